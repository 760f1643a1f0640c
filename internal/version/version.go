// Package version tells which version of the driver a program was built with. It is what the go
// command has written into the program; the source has no number that somebody would have to keep.
package version

import (
	"reflect"
	"runtime/debug"
	"strings"
	"sync"
)

// Unknown is the version of a driver that has none: it was built from a folder, by a replace, a
// workspace or a test.
const Unknown = "devel"

// Driver returns the version of the driver without the "v", such as "0.1.0", or Unknown. A build
// of a commit without a tag has a pseudo-version.
var Driver = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Unknown
	}
	return of(info, module())
})

// module is the path of the driver's module, whatever it was renamed to.
func module() string {
	type here struct{}
	return strings.TrimSuffix(reflect.TypeFor[here]().PkgPath(), "/internal/version")
}

// of returns the version of a module in a program.
func of(info *debug.BuildInfo, path string) string {
	found := &info.Main
	if found.Path != path {
		found = nil
		for _, dep := range info.Deps {
			if dep.Path == path {
				found = dep
			}
		}
	}
	if found != nil && found.Replace != nil {
		found = found.Replace // a folder has no version
	}
	if found == nil || !strings.HasPrefix(found.Version, "v") {
		return Unknown
	}
	return found.Version[1:]
}
