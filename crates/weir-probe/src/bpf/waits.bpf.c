// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// How long connections wait in accept queues, and which segments are sent again. A connection is in the queue from when
// it is established (`established`) until accept(2) returns it (`accepted`). There is no tracepoint of accept alone, so
// that one sees every system call, and looks at its number first.

#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

// What is read of the kernel's own structures; the loader finds where the fields are.
struct ns_common {
	unsigned int inum;
} __attribute__((preserve_access_index));

struct net {
	struct ns_common ns;
} __attribute__((preserve_access_index));

typedef struct {
	struct net *net;
} possible_net_t;

struct sock_common {
	unsigned int skc_daddr;
	unsigned short skc_dport;
	unsigned short skc_num;
	unsigned short skc_family;
	possible_net_t skc_net;
} __attribute__((preserve_access_index));

struct sock {
	struct sock_common __sk_common;
} __attribute__((preserve_access_index));

struct socket {
	struct sock *sk;
} __attribute__((preserve_access_index));

struct file {
	void *private_data;
} __attribute__((preserve_access_index));

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
} __attribute__((preserve_access_index));

struct files_struct {
	struct fdtable *fdt;
} __attribute__((preserve_access_index));

struct task_struct {
	struct files_struct *files;
} __attribute__((preserve_access_index));

// Where processors have the number of a system call.
struct pt_regs___x86 {
	unsigned long orig_ax;
} __attribute__((preserve_access_index));

struct pt_regs___arm64 {
	int syscallno;
} __attribute__((preserve_access_index));

// Of include/linux/socket.h and include/net/tcp_states.h.
#define AF_INET 2
#define TCP_ESTABLISHED 1
#define TCP_SYN_RECV 3
#define TCP_CLOSE 7

// accept(2) and accept4(2) of this processor.
const volatile __u64 accept_call;
const volatile __u64 accept4_call;

#define BUCKETS 24
#define SLOTS 256

// Waits below 1 µs, 2 µs, 4 µs and so on; the last bucket has all longer ones.
struct counts {
	__u64 connections[BUCKETS];
	__u64 wait_ns[BUCKETS];
	__u64 inbound;
	__u64 outbound;
	__u64 clients;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, __u32);
	__type(value, struct counts);
} counts SEC(".maps");

// Whose a port of a network namespace is: the namespace's number times 65536 and the port. Port 0: all others. And
// whose an IPv4 address is, as clients have it: bit 63, the address times 65536, and the port.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, __u32);
} owners SEC(".maps");

// Connections that nobody has accepted yet, and since when.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, __u64);
} waiting SEC(".maps");

static __always_inline __u32 *owner_of(struct sock *sk, int others)
{
	__u64 space = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
	__u64 key = space << 16;

	if (!others)
		key |= BPF_CORE_READ(sk, __sk_common.skc_num);
	return bpf_map_lookup_elem(&owners, &key);
}

static __always_inline struct counts *counts_of(__u32 *owner)
{
	__u32 slot;

	if (!owner)
		return 0;
	slot = *owner;
	return bpf_map_lookup_elem(&counts, &slot);
}

SEC("raw_tp/inet_sock_set_state")
int established(struct bpf_raw_tracepoint_args *context)
{
	struct sock *sk = (struct sock *)context->args[0];
	int before = context->args[1], now = context->args[2];
	__u64 key = (__u64)sk, time;

	if (now == TCP_CLOSE) {
		bpf_map_delete_elem(&waiting, &key);
	} else if (before == TCP_SYN_RECV && now == TCP_ESTABLISHED && owner_of(sk, 0)) {
		time = bpf_ktime_get_ns();
		bpf_map_update_elem(&waiting, &key, &time, BPF_ANY);
	}
	return 0;
}

static __always_inline __u64 call_of(void *registers)
{
	struct pt_regs___x86 *x86 = registers;
	struct pt_regs___arm64 *arm64 = registers;

	if (bpf_core_field_exists(x86->orig_ax))
		return BPF_CORE_READ(x86, orig_ax);
	if (bpf_core_field_exists(arm64->syscallno))
		return BPF_CORE_READ(arm64, syscallno);
	return ~0ULL;
}

// The socket behind a descriptor of the running task.
static __always_inline struct sock *socket_of(long descriptor)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **all = BPF_CORE_READ(table, fd), *file;
	struct socket *socket;

	if (descriptor >= BPF_CORE_READ(table, max_fds))
		return 0;
	if (bpf_probe_read_kernel(&file, sizeof(file), &all[descriptor]))
		return 0;
	socket = BPF_CORE_READ(file, private_data);
	return BPF_CORE_READ(socket, sk);
}

SEC("raw_tp/sys_exit")
int accepted(struct bpf_raw_tracepoint_args *context)
{
	long result = context->args[1];
	__u64 call, key, wait, passed, *since;
	struct counts *of;
	struct sock *sk;
	__u32 bucket = 0;

	if (result < 0)
		return 0;
	call = call_of((void *)context->args[0]);
	if (call != accept4_call && call != accept_call)
		return 0;
	sk = socket_of(result);
	key = (__u64)sk;
	since = bpf_map_lookup_elem(&waiting, &key);
	if (!since)
		return 0;
	wait = bpf_ktime_get_ns() - *since;
	bpf_map_delete_elem(&waiting, &key);
	of = counts_of(owner_of(sk, 0));
	if (!of)
		return 0;
	passed = wait / 1000;
#pragma unroll
	for (int i = 0; i < BUCKETS - 1; i++) {
		if (passed) {
			bucket++;
			passed >>= 1;
		}
	}
	if (bucket >= BUCKETS)
		return 0;
	of->connections[bucket]++;
	of->wait_ns[bucket] += wait;
	return 0;
}

// Whom a client's connection goes to.
static __always_inline __u32 *server_of(struct sock *sk)
{
	__u64 key = 1ULL << 63;

	if (BPF_CORE_READ(sk, __sk_common.skc_family) != AF_INET)
		return 0;
	key |= (__u64)bpf_ntohl(BPF_CORE_READ(sk, __sk_common.skc_daddr)) << 16;
	key |= bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
	return bpf_map_lookup_elem(&owners, &key);
}

static __always_inline int sent_again(struct sock *sk)
{
	struct counts *of = counts_of(server_of(sk));

	if (of) {
		of->clients++;
		return 0;
	}
	of = counts_of(owner_of(sk, 0));

	if (of) {
		of->inbound++;
		return 0;
	}
	of = counts_of(owner_of(sk, 1));
	if (of)
		of->outbound++;
	return 0;
}

SEC("raw_tp/tcp_retransmit_skb")
int segment_again(struct bpf_raw_tracepoint_args *context)
{
	return sent_again((struct sock *)context->args[0]);
}

SEC("raw_tp/tcp_retransmit_synack")
int synack_again(struct bpf_raw_tracepoint_args *context)
{
	return sent_again((struct sock *)context->args[0]);
}
