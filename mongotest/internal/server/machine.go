package server

import (
	"fmt"
	"os"
	"runtime"
)

// TotalMemory is how many bytes the machine has; where that cannot be read, how many the process
// has.
func TotalMemory() int64 {
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		var kilobytes int64
		if n, _ := fmt.Sscanf(string(text), "MemTotal: %d kB", &kilobytes); n == 1 && kilobytes > 0 {
			return kilobytes << 10
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return max(int64(m.Sys), 1<<20)
}
