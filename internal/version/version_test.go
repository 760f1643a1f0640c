package version

import (
	"runtime/debug"
	"testing"
)

func TestOf(t *testing.T) {
	other := debug.Module{Path: "example.com/shop", Version: "v3.0.0"}
	folder := &debug.Module{Path: "../driver"}
	fork := &debug.Module{Path: "example.com/fork", Version: "v0.2.0"}
	for name, c := range map[string]struct {
		info debug.BuildInfo
		want string
	}{
		"a dependency":       {debug.BuildInfo{Main: other, Deps: []*debug.Module{{Path: "example.com/d/otel", Version: "v9.0.0"}, {Path: "example.com/d", Version: "v0.1.0"}}}, "0.1.0"},
		"a pseudo-version":   {debug.BuildInfo{Main: other, Deps: []*debug.Module{{Path: "example.com/d", Version: "v0.0.0-20261127000000-0123456789ab"}}}, "0.0.0-20261127000000-0123456789ab"},
		"the program itself": {debug.BuildInfo{Main: debug.Module{Path: "example.com/d", Version: "v1.2.3+dirty"}}, "1.2.3+dirty"},
		"a test":             {debug.BuildInfo{Main: debug.Module{Path: "example.com/d", Version: "(devel)"}}, Unknown},
		"a folder":           {debug.BuildInfo{Main: other, Deps: []*debug.Module{{Path: "example.com/d", Version: "v0.0.0", Replace: folder}}}, Unknown},
		"a fork":             {debug.BuildInfo{Main: other, Deps: []*debug.Module{{Path: "example.com/d", Version: "v0.0.0", Replace: fork}}}, "0.2.0"},
		"not there":          {debug.BuildInfo{Main: other}, Unknown},
	} {
		if got := of(&c.info, "example.com/d"); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// The module is found by its own name, and this test is built in it.
func TestModule(t *testing.T) {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Path != module() {
		t.Errorf("%s, %v", module(), ok)
	}
	if Driver() == "" {
		t.Error("no version")
	}
}
