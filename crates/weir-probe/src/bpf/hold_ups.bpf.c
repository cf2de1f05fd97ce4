// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Counts how late timer interrupts come. `tick` is the BPF program of a perf event whose timer is due every few
// milliseconds, and does nothing; `expired` sees every timer of the kernel when it is over, and takes this one's.
// Samples of the perf event itself would not do: kernels leave them out on idle CPUs (seen on 6.18).

#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

// What is read of the kernel's own structures; the loader finds where the fields are.
struct timerqueue_node {
	long long expires;
} __attribute__((preserve_access_index));

struct hrtimer {
	struct timerqueue_node node;
	void *function;
} __attribute__((preserve_access_index));

// Where the kernel has the function of perf events' timers.
const volatile __u64 wanted;
// Later than this is a hold-up, nanoseconds.
const volatile __u64 least_ns;

struct counts {
	__u64 ticks;
	__u64 hold_ups;
	__u64 late_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counts);
} counts SEC(".maps");

SEC("perf_event")
int tick(void *context)
{
	return 0;
}

SEC("raw_tp/hrtimer_expire_entry")
int expired(struct bpf_raw_tracepoint_args *context)
{
	struct hrtimer *timer = (struct hrtimer *)context->args[0];
	__u32 only = 0;
	struct counts *own;
	long long now, late;

	if ((__u64)BPF_CORE_READ(timer, function) != wanted)
		return 0;
	own = bpf_map_lookup_elem(&counts, &only);
	if (!own || bpf_probe_read_kernel(&now, sizeof(now), (void *)context->args[1]))
		return 0;
	own->ticks++;
	late = now - BPF_CORE_READ(timer, node.expires);
	if (late > (long long)least_ns) {
		own->hold_ups++;
		own->late_ns += late;
	}
	return 0;
}
