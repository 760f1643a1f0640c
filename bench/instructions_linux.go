package bench

import (
	"encoding/binary"
	"os"
	"strconv"
	"syscall"
	"unsafe"
)

// What perf_event_open(2) is told.
type perfAttributes struct {
	kind, size                            uint32
	config, period, sample, read, options uint64
	wakeup, breakpoint                    uint32
	config1                               uint64
}

const (
	perfHardware     = 0
	perfInstructions = 1
	// Threads that are started later are counted, the kernel and what is below it are not.
	perfInherit, perfNoKernel, perfNoHypervisor = 1 << 1, 1 << 5, 1 << 6
)

// countInstructions calls f and returns how many instructions the process has executed meanwhile,
// -1 where the processor or the kernel do not count them, as in most virtual machines.
func countInstructions(f func() error) (float64, error) {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return -1, f()
	}
	attributes := perfAttributes{kind: perfHardware, config: perfInstructions,
		options: perfInherit | perfNoKernel | perfNoHypervisor}
	attributes.size = uint32(unsafe.Sizeof(attributes))
	var counters []int
	defer func() {
		for _, fd := range counters {
			syscall.Close(fd)
		}
	}()
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			return -1, f()
		}
		fd, _, errno := syscall.Syscall6(syscall.SYS_PERF_EVENT_OPEN, uintptr(unsafe.Pointer(&attributes)), uintptr(id),
			^uintptr(0), ^uintptr(0), 0, 0)
		switch errno {
		case 0:
			counters = append(counters, int(fd))
		case syscall.ESRCH: // it has ended
		default:
			return -1, f()
		}
	}
	before := readCounters(counters)
	err = f()
	return readCounters(counters) - before, err
}

func readCounters(counters []int) (sum float64) {
	for _, fd := range counters {
		var b [8]byte
		if n, err := syscall.Read(fd, b[:]); err == nil && n == len(b) {
			sum += float64(binary.NativeEndian.Uint64(b[:]))
		}
	}
	return sum
}
