//! Foreign text, made safe to show to a person: terminal control characters are made visible, and secrets are masked.
//!
//! [`masked`] parses no language. It knows names of secrets, and the ways in which configurations of proxies, YAML,
//! JSON, HTTP and URLs write a name and its value. It masks too much rather than too little: its output is for people
//! to read, and must never be passed to a proxy or to `patch`.

mod fields;
mod line;
mod secret;
mod words;

use std::borrow::Cow;

#[cfg(test)]
use secret::MASK;

pub use fields::{mask_header_values, masked_study};
pub(crate) use weir_model::foreign::commands;
pub use weir_model::foreign::visible;

/// Replaces secrets in a text by `(masked)`: passwords and their hashes, tokens, credentials of HTTP and in URLs,
/// cookies, private keys. References to a secret (a variable, a file) stay.
pub fn masked(text: &str) -> Cow<'_, str> {
    if !secret::may_be_in(text) {
        return Cow::Borrowed(text);
    }
    let mut lines = line::Lines::default();
    text.split_inclusive('\n').for_each(|line| lines.add(line));
    Cow::Owned(lines.end())
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// Texts with `S3CRET` in place of the secret, which must be masked, and `stays` in other text that must not be.
    const SECRETS: &str = r#"
    user bob password $5$saltsalt$S3CRETS3CRETS3CRET groups stays
    user bob insecure-password S3CRET
    stats auth admin:S3CRET
    http-request set-header Authorization "Basic S3CRET" if stays
    http-request set-header X-Api-Key S3CRET
    http-request set-header Authorization Basic\ S3CRET
    http-request set-var(txn.token) str(S3CRET)
    http-check send meth GET uri /stays hdr Authorization "Bearer S3CRET"
    tcp-check send AUTH\ S3CRET\r\n
    setenv DB_PASSWORD "S3CRET"
    proxy_set_header Authorization "Basic S3CRET"; # stays
    proxy_set_header X-Auth-Token S3CRET; # stays
    proxy_set_header Cookie "session=S3CRET";
    fastcgi_param DB_PASSWORD S3CRET;
    set $api_token "S3CRET";
    set $token S3CRET;
    if ($http_x_api_key != "S3CRET") { return 403; }
    secure_link_secret S3CRET;
    "Bearer S3CRET" 1;
    alice:$apr1$stay$S3CRETS3CRET
    alice:{SHA}S3CRETS3CRET=
    proxy_pass http://user:S3CRET@stays:80/;
    redis://:S3CRET/S3CRET@stays:6379/0
    proxy_pass http://stays/login?token=S3CRET&name=stays;
    curl -H 'Authorization: Bearer S3CRET' https://stays/
    password: S3CRET
    password: "S3CRET" # stays
    client_secret: 'S3CRET, S3CRET'
    - authorization: Basic S3CRET
    headers: {x-api-key: S3CRET, accept: stays}
    header: {key: authorization, value: "S3CRET"}
    {"name": "stays", "api_key": "S3\"CRET", "accessToken":"S3CRET", "port": 1}
    ["authorization", "S3CRET"],
    "set": {"Authorization": ["S3CRET"], "Accept": ["stays"]}
    "private_key": {"inline_string": "S3CRET"}
    "inline_bytes": "LS0tLS1CRUdJTiBQUklWQVRFS3CRET=="
    "key": "-----BEGIN RSA PRIVATE KEY-----\nS3CRET\n-----END RSA PRIVATE KEY-----\n", "a": "stays"
    RequestHeader set Authorization "Basic S3CRET"
    AuthLDAPBindPassword S3CRET
    SetEnv APP_TOKEN S3CRET
    header_up Authorization "Bearer S3CRET"
    acl stays req.hdr(x-api-key) -m str S3CRET S3CRET
    http-request deny unless { req.hdr(X-Api-Key),lower -i -m str S3CRET } stays
    http-request set-var(txn.token) str(S3CRET) if { path /stays }
    secure_link_md5 "$secure_link_expires$uri S3CRET"; # stays
    proxy_pass http://stays/blob?name=stays&sig=S3CRET;
    GET /stays?code=S3CRET&page=stays
    GET http://stays/cb?page=stays&state=S3CRET#stays
    http://stays/;jsessionid=S3CRET?PHPSESSID=S3CRET&app_session=S3CRET&otp=S3CRET
    {"url":"http://stays/?sid=S3CRET","name":"stays"}
    http://stays/?x[password]=S3CRET&user%5Bpass-word%5D=S3CRET&a[token][]=S3CRET&b[stays]=stays
    http://stays/?%70assword=S3CRET&%70%61ss%77ord=S3CRET&%2570assword=S3CRET&pass%20word=S3CRET&a=stays
    GET /stays?s%69d=S3CRET&x[otp]=S3CRET&page%5B1%5D=stays
    x[password]=S3CRET&a=stays
    %70assword=S3CRET
    http://stays/?next=http%3A%2F%2Fstays%2F%3Ftoken%3DS3CRET&a=stays
    - {name: x-api-key, string_match: {exact: S3CRET}, stays: 1}
    {"name": "x-api-key", "string_match": {"exact": "S3CRET"}}, "stays"
    local_jwks: {inline_string: '{"keys": [{"kty": "oct", "k": "S3CRET"}]}'}
    basic_auth { stays $2a$14$S3CRETS3CRETS3CRETS3CRET }
    ./token:3S3CRET
    ./token:3:S3CRET
    /stays/password:S3CRET:1
    [emerg] unknown directive "password=S3CRET" in /stays
    "#;

    #[test]
    fn secrets_are_masked_in_every_way_of_writing_them() {
        for line in SECRETS.lines().map(str::trim).filter(|line| !line.is_empty()) {
            // Alone, as a line of a diff, and twice: what is masked once stays so.
            for line in [line.to_owned(), format!("+    {line}")] {
                let masked_text = masked(&line);
                assert!(!masked_text.contains("CRET"), "{masked_text}");
                assert!(masked_text.contains(MASK), "{masked_text}");
                let stay_count = line.matches("stays").count();
                assert_eq!(masked_text.matches("stays").count(), stay_count, "{masked_text}");
                assert_eq!(masked(&masked_text), masked_text);
            }
        }
    }

    #[test]
    fn what_is_no_secret_stays() {
        for text in [
            "server_tokens off;",
            "proxy_pass http://backend;",
            "fastcgi_pass unix:/run/php.sock;",
            "auth_basic \"Staff\";",
            "auth_basic_user_file /etc/nginx/htpasswd;",
            "ssl_password_file /etc/keys/pass;",
            "ssl_certificate_key /etc/keys/a.pem;",
            "proxy_set_header Authorization $http_authorization;",
            "map $http_authorization $user {",
            "proxy_cache_key $host$request_uri;",
            "rewrite ^/a/(.*)$ /$1$is_args$args;",
            "http-request set-header Authorization %[var(txn.a)]",
            "http-request set-header X-A %[var(txn.token)]",
            "http-request deny unless { req.hdr(x-api-key) -m found }",
            "acl known req.hdr(x-api-key) -i -f /etc/keys.lst",
            "map $http_apikey $client {",
            "password: ${DB_PASSWORD}",
            "\"token_bucket\": {\"max_tokens\": 100, \"tokens_per_fill\": 1}",
            "header_up Authorization {http.request.header.Authorization}",
            "the password of this user is wrong",
            "unexpected token `x` at line 3",
            "http://127.0.0.1:8080/@user/a",
            "keepalive_requests 1000;",
            "basic authentication is off",
            "cookie SRV insert indirect nocache",
            "private_key: {filename: /etc/keys/a.pem}",
            "auth_request /x/checkAuthorization (notes.nginx:21): it is asked",
            "location /access_token (a.conf:3) passes it on",
            "  --> ./token:3",
            "  --> ./token:3:14",
            "  --> secret:2:1",
            "./api_key:12: a request has no path",
            "cannot read /etc/passwd:1:7: it is no URL",
            "both (/run/secrets/secret:4, ./token:5) are empty",
            "http://127.0.0.1/?page=2&code=&state=on",
            "code=200; state=open",
            "http://127.0.0.1/?page%5B1%5D=2&a[b]=c&next=http%3A%2F%2Fb%2F%3Fpage%3D2",
            "%{tokens}t %>s 100% of all=1",
        ] {
            assert_eq!(masked(text), text);
        }
    }

    #[test]
    fn blocks_are_masked_as_a_whole() {
        let text = "\
filter:
  generic_secret:
    secret:
      inline_string: S3CRET
      filename: /stays
  private_key:
    inline_string: |
      -----BEGIN PRIVATE KEY-----
      S3CRETS3CRETS3CRET
      S3CRET
      -----END PRIVATE KEY-----
  stays: 1
 headers:
   - header:
       key: x-api-key
       value: S3CRET
   - header:
       key: accept
       value: stays
 headers:
   - name: x-api-key
     string_match:
       exact: S3CRET
       ignore_case: true
   - name: accept
     string_match:
       exact: stays
 map $http_apikey $client {
     default 0;
     \"S3CRET\" stays;
     S3CRET     stays;
 }
 proxy_set_header X-Api-Key
     \"S3CRET\";
 \"set\": {
   \"Authorization\": [
     \"S3CRET\",
     \"S3CRET\"
   ],
   \"Accept\": [\"stays\"]
 }
 [
   \"authorization\",
   \"Basic S3CRET\"
 ],
 stays\n";
        for text in [text.to_owned(), text.replace("\n ", "\n+ ")] {
            let masked_text = masked(&text);
            assert!(!masked_text.contains("CRET"), "{masked_text}");
            assert_eq!(masked_text.matches("stays").count(), 8, "{masked_text}");
            assert!(masked_text.contains("-----END PRIVATE KEY-----"), "{masked_text}");
        }
        // A diff may have the end of a key or its middle alone.
        let long = "S3CRET".repeat(11);
        for text in [
            format!(" {long}\n S3CRETab==\n -----END PRIVATE KEY-----\n+a 1;\n"),
            format!(" {long}\n+a 1;\n"),
            format!(" -----BEGIN EC PRIVATE KEY-----\n {long}\n@@ -1 +1 @@\n+a 1;\n"),
        ] {
            let masked_text = masked(&text);
            assert!(!masked_text.contains("CRET"), "{masked_text}");
            assert!(masked_text.ends_with("+a 1;\n"), "{masked_text}");
        }
    }

    #[test]
    fn json_stays_json() {
        let text = r#"{
  "study": {"headers": [["authorization", "Basic S3CRET"], ["accept", "stays"]]},
  "password": "S3\"CRET",
  "secret": {"a": ["S3CRET", {"b": "S3CRET"}], "n": 1},
  "token": 12345,
  "pairs": [
    [
      "x-api-key",
      "S3CRET"
    ]
  ],
  "url": "https://u:S3CRET@stays/"
}"#;
        let masked_text = masked(text);
        assert!(!masked_text.contains("CRET") && !masked_text.contains("12345"), "{masked_text}");
        assert_eq!(masked_text.matches("stays").count(), 2, "{masked_text}");
        let read: Result<serde_json::Value, _> = serde_json::from_str(&masked_text);
        assert!(read.is_ok(), "{masked_text}");
    }

    /// Generates any JSON, with arbitrary keys and strings.
    fn json() -> impl Strategy<Value = Value> {
        let text =
            || prop_oneof!["[ -~]{0,10}", "(Bearer|Basic|token|cookie|https://a:b@c/)[ -~]{0,8}"];
        let key = prop_oneof![
            text(),
            Just("password".to_owned()),
            Just("authorization".to_owned()),
            Just("api_key".to_owned()),
        ];
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            any::<u32>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            Just(Value::Null),
            text().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 5, move |inner| {
            prop_oneof![
                vec(inner.clone(), 0..5).prop_map(Value::from),
                vec((key.clone(), inner), 0..5)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_json_stays_json(value in json()) {
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            for text in [value.to_string(), pretty] {
                let masked_text = masked(&text);
                let read: Result<Value, _> = serde_json::from_str(&masked_text);
                prop_assert!(read.is_ok(), "{text}\n{masked_text}");
            }
        }

        #[test]
        fn any_key_stays_json(key in "(token|password)[*:=!~> ]{0,3}[0-9]{0,3}") {
            let text = serde_json::json!({ key: false }).to_string();
            let read: Result<Value, _> = serde_json::from_str(&masked(&text));
            prop_assert!(read.is_ok(), "{text}\n{}", masked(&text));
        }

        #[test]
        fn any_text_is_taken(text in "(\\PC|[\"'{}\\[\\]:=,\n -]|token|password|://|Basic )*") {
            let masked_text = masked(&text).into_owned();
            prop_assert!(masked_text.is_char_boundary(masked_text.len()));
        }
    }
}
