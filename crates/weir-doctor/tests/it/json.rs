//! An examination in its JSON form.

use weir_testkit::doctor_host::Host;

#[test]
fn the_json_form() {
    insta::assert_snapshot!(Host::tuned().examined().json().unwrap());
}
