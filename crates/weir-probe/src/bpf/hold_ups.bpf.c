// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Counts how late timer interrupts come, and how long others have a CPU. `tick` is the BPF program of a perf event
// whose timer is due every few milliseconds, and does nothing; `expired` sees every timer of the kernel when it is
// over, and takes this one's. Samples of the perf event itself would not do: kernels leave them out on idle CPUs
// (seen on 6.18). `switched` sees every change of the task that a CPU has.

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

struct task_struct {
	int tgid;
	unsigned int flags;
	struct task_struct *real_parent;
	char comm[16];
} __attribute__((preserve_access_index));

// Of include/linux/sched.h: a thread of the kernel.
#define PF_KTHREAD 0x00200000

// Where the kernel has the function of perf events' timers.
const volatile __u64 wanted;
// Longer than this is a hold-up, nanoseconds.
const volatile __u64 least_ns;

struct counts {
	__u64 ticks;
	__u64 hold_ups;
	__u64 late_ns;
	__u64 others_ns;
	// Of the other process that has the CPU: since when, and up to when it is counted. 0: none has.
	__u64 since_ns;
	__u64 counted_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counts);
} counts SEC(".maps");

// Processes that are a part of the run.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u8);
} own SEC(".maps");

static __always_inline int is_own(struct task_struct *task)
{
	__u32 process = BPF_CORE_READ(task, tgid);
	__u32 parent;

	if (bpf_map_lookup_elem(&own, &process))
		return 1;
	parent = BPF_CORE_READ(task, real_parent, tgid);
	return bpf_map_lookup_elem(&own, &parent) != 0;
}

// Threads of the kernel work for whoever has sent a packet or written a file, but for those that look through
// memory by the clock: kdamond, khugepaged, ksmd. Letter by letter, because there is no memcmp() here.
static __always_inline int works_by_the_clock(struct task_struct *task)
{
	char name[16] = {};

	BPF_CORE_READ_STR_INTO(&name, task, comm);
	if (name[0] != 'k')
		return 0;
	return (name[1] == 'd' && name[2] == 'a' && name[3] == 'm') ||
	       (name[1] == 'h' && name[2] == 'u' && name[3] == 'g') ||
	       (name[1] == 's' && name[2] == 'm' && name[3] == 'd');
}

static __always_inline int is_other(struct task_struct *task)
{
	// The idle task is a thread of the kernel too.
	if (BPF_CORE_READ(task, flags) & PF_KTHREAD)
		return works_by_the_clock(task);
	return !is_own(task);
}

// Counts what another process has had the CPU for until now.
static __always_inline void count_others(struct counts *of, __u64 now)
{
	if (!of->since_ns || now - of->since_ns <= least_ns)
		return;
	of->others_ns += now - of->counted_ns;
	of->counted_ns = now;
}

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
	struct counts *of;
	long long now, late;

	if ((__u64)BPF_CORE_READ(timer, function) != wanted)
		return 0;
	of = bpf_map_lookup_elem(&counts, &only);
	if (!of || bpf_probe_read_kernel(&now, sizeof(now), (void *)context->args[1]))
		return 0;
	of->ticks++;
	late = now - BPF_CORE_READ(timer, node.expires);
	if (late > (long long)least_ns) {
		of->hold_ups++;
		of->late_ns += late;
	}
	// So that what lasts beyond the end of a slice is counted in both.
	count_others(of, bpf_ktime_get_ns());
	return 0;
}

SEC("raw_tp/sched_switch")
int switched(struct bpf_raw_tracepoint_args *context)
{
	struct task_struct *next = (struct task_struct *)context->args[2];
	__u32 only = 0;
	struct counts *of = bpf_map_lookup_elem(&counts, &only);
	__u64 now;

	// CPUs that are not watched have no ticks.
	if (!of || !of->ticks)
		return 0;
	now = bpf_ktime_get_ns();
	count_others(of, now);
	if (!is_other(next)) {
		of->since_ns = 0;
	} else if (!of->since_ns) {
		of->since_ns = now;
		of->counted_ns = now;
	}
	return 0;
}
