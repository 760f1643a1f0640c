package advisor

import (
	"encoding/binary"
	"hash/maphash"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"

	"allium"
)

// caller is the place in the program that called the driver.
type caller struct {
	file  string
	line  int
	stack uint64 // a hash of the whole way there
}

var (
	seed = maphash.MakeSeed()
	// driver is the path of the driver's module.
	driver = reflect.TypeFor[allium.Client]().PkgPath()
	// folder is where its files are, as the compiler has noted it.
	folder = func() string {
		file, _ := runtime.FuncForPC(reflect.ValueOf(allium.Open).Pointer()).FileLine(0)
		return filepath.Dir(file)
	}()
)

// inDriver reports whether a file is the driver's: a function within one of its iterators has the
// name of the program's function that ranges over it.
func inDriver(file string) bool {
	return filepath.Dir(file) == folder && !strings.HasSuffix(file, "_test.go")
}

// callerOf finds the caller of the operation that this goroutine runs.
func callerOf() caller {
	var pcs [64]uintptr
	n := runtime.Callers(3, pcs[:])
	frames := runtime.CallersFrames(pcs[:n])
	var c caller
	var h maphash.Hash
	h.SetSeed(seed)
	for {
		f, more := frames.Next()
		if f.Function != "" && !ofDriver(f.Function) && !inDriver(f.File) {
			if c.file == "" && !between(f.Function) {
				c.file, c.line = f.File, f.Line
			}
			if c.file != "" {
				var pc [8]byte
				binary.LittleEndian.PutUint64(pc[:], uint64(f.PC))
				h.Write(pc[:])
			}
		}
		if !more {
			break
		}
	}
	c.stack = h.Sum64()
	return c
}

// packageOf returns the path of a function's package.
func packageOf(function string) string {
	if i := strings.IndexByte(function, '['); i >= 0 { // of a generic function
		function = function[:i]
	}
	slash := strings.LastIndexByte(function, '/') + 1
	if dot := strings.IndexByte(function[slash:], '.'); dot >= 0 {
		return function[:slash+dot]
	}
	return function
}

// ofDriver reports whether a function is the driver's, or one of a library that is made of it.
func ofDriver(function string) bool {
	pkg := packageOf(function)
	if pkg == driver || strings.HasPrefix(pkg, "go.mongodb.org/mongo-driver/") {
		return true
	}
	rest, ok := strings.CutPrefix(pkg, driver+"/")
	if !ok || strings.HasSuffix(pkg, "_test") {
		return false
	}
	for _, own := range []string{"internal/cursor", "internal/exec", "gridfs", "field/typed", "encryption", "debug",
		"debug/advisor"} {
		if rest == own {
			return true
		}
	}
	return false
}

// between reports whether a function of the standard library may stand between the program's and
// the driver's, as that of a sync.Once.
func between(function string) bool {
	switch packageOf(function) {
	case "iter", "maps", "runtime", "slices", "sync":
		return true
	}
	return false
}
