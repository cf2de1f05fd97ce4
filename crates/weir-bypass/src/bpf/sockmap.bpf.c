// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Hands what one end of a TCP connection sends to the other end's receive queue, where both ends
// are sockets of this host.
//
// `events` (sock_ops) takes sockets of the wanted endpoints into a SOCKHASH when their handshake
// is over. `verdict` (sk_msg) decides for every message whether it is redirected or goes by TCP.
// `arrived` (sk_skb) has what comes by TCP put into the same queue, so that receivers see one queue:
// without it recv(2) returns early between the two, and FIONREAD tells of one alone.
//
// Order. Bytes in the queue are read as they were put there, and a redirected message is in it
// before the sender's call returns. So a message by TCP never overtakes a redirected one; a
// redirected one would overtake what is still under way by TCP. Hence it is redirected only if the
// peer has read all that was ever sent by TCP: its copied_seq is this end's write_seq. That is also
// what tells the peer from another socket that had the same addresses and ports: sequence numbers
// begin at random.
//
// Backpressure. A redirected message never waits, however long the queue is. So one that finds
// QUEUE_MAX bytes goes by TCP, whose window closes, and so do all until the peer has read them.

#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

#define AF_INET 2
// Namespaces that user space may be asking about at one time.
#define ASKED_MAX 64
#define SOCKETS_MAX (1 << 18)
#define HOPS_MAX 1024
// One message is at most 17 fragments of a page of 32 KiB (skmsg.h), so a queue is below 1 MiB.
#define QUEUE_MAX (256 * 1024)
// How the kernel writes an IPv4 address where one of IPv6 is asked for (RFC 4291, 2.5.5.2).
#define V4_MAPPED bpf_htonl(0xffff)

// What is read of the kernel's own structures; the loader finds where the fields are.
typedef struct {
	int counter;
} atomic_t;

struct proto {
	long *memory_allocated; // atomic_long_t, which holds nothing else
	long *sysctl_mem;
} __attribute__((preserve_access_index));

struct sock_common {
	unsigned char skc_state;
	struct proto *skc_prot;
} __attribute__((preserve_access_index));

struct sock {
	struct sock_common __sk_common;
	struct {
		atomic_t rmem_alloc;
	} sk_backlog;
} __attribute__((preserve_access_index));

struct tcp_sock {
	__u32 copied_seq;
	__u32 write_seq;
} __attribute__((preserve_access_index));

struct endpoint {
	__u32 address[4];
	__u32 port;
};

// An end of a connection, as it sees itself.
struct tuple {
	struct endpoint local;
	struct endpoint remote;
};

// A leg, and the network namespaces that its ends must be in, by their cookies; 0 is any.
struct hop {
	__u64 client;
	__u64 server;
	__u64 row; // of `counts`
};

struct end {
	__u64 sock; // its struct tcp_sock, for reading only
	__u64 hop;
};

struct counters {
	__u64 sockets;
	__u64 redirected;
	__u64 redirected_bytes;
	__u64 alone; // left to TCP: the peer is not taken in
	__u64 behind; // left to TCP: the peer has not read all that came by TCP
	__u64 full; // left to TCP: the peer's queue is long, or memory for TCP is scarce
	__u64 tcp_bytes;
	__u64 refused; // sockets that are TCP's altogether: there was no place for them
};

struct {
	__uint(type, BPF_MAP_TYPE_SOCKHASH);
	__uint(max_entries, SOCKETS_MAX);
	__type(key, struct tuple);
	__type(value, __u32);
} sockets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, SOCKETS_MAX);
	__type(key, struct tuple);
	__type(value, struct end);
} ends SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HOPS_MAX);
	__type(key, struct endpoint);
	__type(value, struct hop);
} hops SEC(".maps");

// Sockets, by their cookies, of which user space wants to know the namespace's cookie.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ASKED_MAX);
	__type(key, __u64);
	__type(value, __u64);
} asked SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, HOPS_MAX);
	__type(key, __u32);
	__type(value, struct counters);
} counts SEC(".maps");

static __always_inline void set_v4(struct endpoint *end, __u32 address, __u32 port)
{
	end->address[0] = 0;
	end->address[1] = 0;
	end->address[2] = V4_MAPPED;
	end->address[3] = address;
	end->port = port;
}

// One load for one field: the verifier takes no pointer into a context that was moved, which the
// compiler would make to share loads between branches.
#define FIELD(context, field)                                                                  \
	({                                                                                     \
		__u32 value;                                                                   \
		asm volatile("%0 = *(u32 *)(%1 + %2)"                                          \
			     : "=r"(value)                                                     \
			     : "r"(context), "i"(__builtin_offsetof(typeof(*context), field))); \
		value;                                                                         \
	})

static __always_inline void tuple_of_event(const struct bpf_sock_ops *ops, struct tuple *t)
{
	__u32 remote_port = bpf_ntohl(FIELD(ops, remote_port));

	if (FIELD(ops, family) == AF_INET) {
		set_v4(&t->local, FIELD(ops, local_ip4), FIELD(ops, local_port));
		set_v4(&t->remote, FIELD(ops, remote_ip4), remote_port);
		return;
	}
	t->local.address[0] = FIELD(ops, local_ip6[0]);
	t->local.address[1] = FIELD(ops, local_ip6[1]);
	t->local.address[2] = FIELD(ops, local_ip6[2]);
	t->local.address[3] = FIELD(ops, local_ip6[3]);
	t->local.port = FIELD(ops, local_port);
	t->remote.address[0] = FIELD(ops, remote_ip6[0]);
	t->remote.address[1] = FIELD(ops, remote_ip6[1]);
	t->remote.address[2] = FIELD(ops, remote_ip6[2]);
	t->remote.address[3] = FIELD(ops, remote_ip6[3]);
	t->remote.port = remote_port;
}

// The sender's peer: local and remote are the other way round.
static __always_inline void peer_of_message(const struct sk_msg_md *msg, struct tuple *t)
{
	__u32 remote_port = bpf_ntohl(FIELD(msg, remote_port));

	if (FIELD(msg, family) == AF_INET) {
		set_v4(&t->remote, FIELD(msg, local_ip4), FIELD(msg, local_port));
		set_v4(&t->local, FIELD(msg, remote_ip4), remote_port);
		return;
	}
	t->remote.address[0] = FIELD(msg, local_ip6[0]);
	t->remote.address[1] = FIELD(msg, local_ip6[1]);
	t->remote.address[2] = FIELD(msg, local_ip6[2]);
	t->remote.address[3] = FIELD(msg, local_ip6[3]);
	t->remote.port = FIELD(msg, local_port);
	t->local.address[0] = FIELD(msg, remote_ip6[0]);
	t->local.address[1] = FIELD(msg, remote_ip6[1]);
	t->local.address[2] = FIELD(msg, remote_ip6[2]);
	t->local.address[3] = FIELD(msg, remote_ip6[3]);
	t->local.port = remote_port;
}

// An endpoint without an address stands for its port at any address.
static __always_inline struct hop *hop_of(const struct endpoint *server)
{
	struct endpoint any = {.port = server->port};
	struct hop *hop = bpf_map_lookup_elem(&hops, server);

	return hop ? hop : bpf_map_lookup_elem(&hops, &any);
}

static __always_inline struct counters *counters_of(__u64 row)
{
	__u32 index = row;

	return bpf_map_lookup_elem(&counts, &index);
}

// Equal addresses in other namespaces are other endpoints.
static __always_inline int is_in(struct bpf_sock_ops *ops, __u64 wanted)
{
	return !wanted || bpf_get_netns_cookie(ops) == wanted;
}

static __always_inline int has_a_place(struct bpf_sock_ops *ops, struct tuple *t,
				       const struct hop *hop)
{
	struct end end = {};
	struct bpf_sock *sk = ops->sk;

	if (!sk)
		return 0;
	end.sock = (__u64)bpf_skc_to_tcp_sock(sk);
	end.hop = hop->row;
	if (!end.sock)
		return 0;
	// Never over another socket's entry: what its owner has not read yet would be lost.
	if (bpf_sock_hash_update(ops, &sockets, t, BPF_NOEXIST))
		return 0;
	if (bpf_map_update_elem(&ends, t, &end, BPF_ANY)) {
		bpf_map_delete_elem(&sockets, t);
		return 0;
	}
	bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_STATE_CB_FLAG);
	return 1;
}

static __always_inline void take_in(struct bpf_sock_ops *ops, struct tuple *t,
				    const struct hop *hop)
{
	int is_in_map = has_a_place(ops, t, hop);
	struct counters *count = counters_of(hop->row);

	if (!count)
		return;
	if (is_in_map)
		count->sockets++;
	else
		count->refused++;
}

// The kernel takes a closed socket out of `sockets` by itself.
static __always_inline void forget(struct bpf_sock_ops *ops, const struct tuple *t)
{
	struct end *end = bpf_map_lookup_elem(&ends, t);
	struct bpf_sock *sk = ops->sk;

	if (end && sk && end->sock == (__u64)bpf_skc_to_tcp_sock(sk))
		bpf_map_delete_elem(&ends, t);
}

// User space cannot ask a socket for its namespace's cookie without unsafe code, so it asks here.
static __always_inline void tell_namespace(struct bpf_sock_ops *ops)
{
	__u64 cookie = bpf_get_socket_cookie(ops);
	__u64 *answer = bpf_map_lookup_elem(&asked, &cookie);

	if (answer)
		*answer = bpf_get_netns_cookie(ops);
}

SEC("sockops")
int events(struct bpf_sock_ops *ops)
{
	struct tuple t = {};
	struct hop *hop;

	switch (ops->op) {
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
		tell_namespace(ops);
		tuple_of_event(ops, &t);
		hop = hop_of(&t.remote);
		if (hop && is_in(ops, hop->client))
			take_in(ops, &t, hop);
		break;
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		tuple_of_event(ops, &t);
		hop = hop_of(&t.local);
		if (hop && is_in(ops, hop->server))
			take_in(ops, &t, hop);
		break;
	case BPF_SOCK_OPS_STATE_CB:
		if (ops->args[1] != BPF_TCP_CLOSE)
			break;
		tuple_of_event(ops, &t);
		forget(ops, &t);
		break;
	}
	return 0;
}

static __always_inline int receives(unsigned char state)
{
	return state == BPF_TCP_ESTABLISHED || state == BPF_TCP_FIN_WAIT1 ||
	       state == BPF_TCP_FIN_WAIT2;
}

// Above the first of tcp_mem's marks a redirected message may be refused with ENOMEM, which senders
// take for the end of the connection; TCP waits instead.
static __always_inline int memory_is_scarce(struct tcp_sock *tcp)
{
	struct proto *proto = BPF_CORE_READ((struct sock *)tcp, __sk_common.skc_prot);
	long used = 0, allowed = 0;

	bpf_probe_read_kernel(&used, sizeof(used), BPF_CORE_READ(proto, memory_allocated));
	bpf_probe_read_kernel(&allowed, sizeof(allowed), BPF_CORE_READ(proto, sysctl_mem));
	return used > allowed;
}

static __always_inline int left_alone(const struct tuple *peer, __u32 size)
{
	struct tuple own = {.local = peer->remote, .remote = peer->local};
	struct end *end = bpf_map_lookup_elem(&ends, &own);
	struct counters *count = end ? counters_of(end->hop) : 0;

	if (count) {
		count->alone++;
		count->tcp_bytes += size;
	}
	return SK_PASS;
}

SEC("sk_msg")
int verdict(struct sk_msg_md *msg)
{
	struct tuple peer = {};
	struct counters *count;
	struct tcp_sock *own, *other;
	struct bpf_sock *sk = msg->sk;
	__u32 size = msg->size;
	struct end *end;

	peer_of_message(msg, &peer);
	end = bpf_map_lookup_elem(&ends, &peer);
	if (!end || !sk)
		return left_alone(&peer, size);
	count = counters_of(end->hop);
	own = bpf_skc_to_tcp_sock(sk);
	if (!own || !count)
		return SK_PASS;
	other = (struct tcp_sock *)end->sock;

	if (own->write_seq != BPF_CORE_READ(other, copied_seq) ||
	    !receives(BPF_CORE_READ((struct sock *)other, __sk_common.skc_state))) {
		count->behind++;
		count->tcp_bytes += size;
		return SK_PASS;
	}
	if (BPF_CORE_READ((struct sock *)other, sk_backlog.rmem_alloc.counter) >= QUEUE_MAX ||
	    memory_is_scarce(own)) {
		count->full++;
		count->tcp_bytes += size;
		return SK_PASS;
	}
	// A peer that is closed already is in the map no more. Then TCP has to say so to the sender.
	if (bpf_msg_redirect_hash(msg, &sockets, &peer, BPF_F_INGRESS) != SK_PASS)
		return left_alone(&peer, size);
	count->redirected++;
	count->redirected_bytes += size;
	return SK_PASS;
}

SEC("sk_skb/stream_verdict")
int arrived(struct __sk_buff *skb)
{
	return SK_PASS;
}
