package main

import (
	"go/format"
	"testing"
)

// TestDropUnused gives files as they are after their calls were rewritten.
func TestDropUnused(t *testing.T) {
	for _, test := range []struct{ name, before, after string }{
		{"a context and an image", `package p

import (
	"context"
	"os"
	"testing"

	"allium/mongotest"
)

func Test(t *testing.T) {
	ctx := context.Background()
	img := os.Getenv("IMAGE")
	d := mongotest.Start(t)
	_ = d.URI()
}
`, `package p

import (
	"testing"

	"allium/mongotest"
)

func Test(t *testing.T) {
	d := mongotest.Start(t)
	_ = d.URI()
}
`},
		{"a cancel that is used", `package p

import (
	"context"
	"time"
)

func F() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	open()
}
`, `package p

import (
	"context"
	"time"
)

func F() {
	_, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	open()
}
`},
		{"what has an effect stays", `package p

func F() {
	img := pull()
	a, err := pull2()
	if err != nil {
		panic(err)
	}
	var b = pull()
	if c := pull(); true {
		open()
	}
}
`, `package p

func F() {
	_ = pull()
	_, err := pull2()
	if err != nil {
		panic(err)
	}
	var _ = pull()
	if _ = pull(); true {
		open()
	}
}
`},
		{"a chain, an assignment and a range", `package p

func F(list []string) {
	base := "mongo"
	img := base + ":8"
	img = "other"
	for i, v := range list {
		open(i)
	}
	n := 1
	open()
}
`, `package p

func F(list []string) {
	_ = "other"
	for i, _ := range list {
		open(i)
	}
	open()
}
`},
		{"what is used is left alone", `package p

import "context"

func F() {
	ctx := context.Background()
	go func() { open(ctx) }()
	var x struct{ ctx int }
	open(T{ctx: x.ctx})
	switch y := any(x).(type) {
	case int:
		open(y)
	}
}
`, ""},
	} {
		want := test.after
		if want == "" {
			want = test.before
		}
		got, err := format.Source([]byte(dropImports(dropUnused(test.before), nil)))
		if err != nil || string(got) != want {
			t.Errorf("%s: %v\n%s", test.name, err, got)
		}
	}
}

// TestDropImports: the name of a package need not be the end of its path.
func TestDropImports(t *testing.T) {
	const src = `package p

import (
	_ "embed"
	"example.com/yaml.v3"
	"example.com/zap/v2"
	log "log/slog"
)

var x = yaml.V
`
	const want = `package p

import (
	_ "embed"
	"example.com/yaml.v3"
)

var x = yaml.V
`
	if got := dropImports(src, map[string]string{"example.com/yaml.v3": "yaml", "example.com/zap/v2": "zap"}); got != want {
		t.Errorf("%s", got)
	}
}
