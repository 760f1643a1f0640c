package main

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"unicode"

	"allium/bson"
	"allium/internal/fakeserver"
)

// steering is text of every kind that steers a terminal.
const steering = "\x1b[2J\x00\x07\x08\r\x7f\u009b31m\u202e\u2066\u200f\u2028\ufeff\xff"

// startHostile starts a server that has a text in its replies, and names as many members, new ones
// each time.
func startHostile(t *testing.T, text string, members int) string {
	t.Helper()
	var n atomic.Int64
	s := &fakeserver.Server{Handle: func(r *fakeserver.Request) {
		start, d := bson.BeginDocument(nil)
		d = bson.AppendInt32(d, "ok", 1)
		if r.IsHello() {
			d = bson.AppendBool(d, "isWritablePrimary", true)
			d = bson.AppendBool(d, "helloOk", true)
			d = bson.AppendInt32(d, "maxWireVersion", 25)
			d = bson.AppendInt32(d, "maxBsonObjectSize", 16<<20)
			d = bson.AppendInt32(d, "maxMessageSizeBytes", 48_000_000)
			d = bson.AppendInt32(d, "maxWriteBatchSize", 100_000)
			if members > 0 {
				d = bson.AppendString(d, "setName", "rs")
				start, list := bson.BeginDocument(nil)
				for m := range members { // where nobody listens
					i := n.Add(1)
					list = bson.AppendString(list, fmt.Sprint(m), fmt.Sprintf("127.0.%d.%d:1", i/250+1, i%250+1))
				}
				d = bson.AppendArray(d, "hosts", bson.EndDocument(list, start))
			}
		}
		d = bson.AppendString(d, "version", "8.0.0"+text)
		d = bson.AppendString(d, "note"+strings.ReplaceAll(text, "\x00", ""), text)
		r.Reply(bson.EndDocument(d, start))
	}}
	return s.Listen(t)
}

func checkPrintable(t *testing.T, text string) {
	t.Helper()
	for _, r := range text {
		if r != '\n' && r != '\t' && (unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) || r == unicode.ReplacementChar) {
			t.Errorf("%U is printed in %q", r, text)
			return
		}
	}
}

// TestNothingSteersTheTerminal runs each verb that prints what a server sent, and arguments of the
// program's own.
func TestNothingSteersTheTerminal(t *testing.T) {
	addr, valid := startHostile(t, steering, 0), startHostile(t, strings.TrimSuffix(steering, "\xff"), 0)
	for _, args := range [][]string{
		{"run", "mongodb://" + valid, `{"x": 1}`}, {"ping", "-json", "mongodb://" + valid},
		{"ping", "mongodb://" + addr}, {"ping", "-json", "mongodb://" + addr}, {"doctor", "mongodb://" + addr}, {"run", "mongodb://" + addr, `{"x": 1}`},
		{"run", "-canonical", "mongodb://" + addr, `{"x": 1}`}, {"run", "mongodb://" + addr, steering}, {"ping", steering}, {"doctor", steering}, {"watch", steering}, {steering}, {"help", steering},
		{"completion", steering},
	} {
		var out, errs strings.Builder
		run(t.Context(), args, &out, &errs)
		checkPrintable(t, out.String())
		checkPrintable(t, errs.String())
		if out.Len()+errs.Len() == 0 {
			t.Errorf("%q printed nothing", args)
		}
	}
}

// TestMembersWithoutEnd: not all members are asked that a server names beyond what a set can have.
func TestMembersWithoutEnd(t *testing.T) {
	for _, verb := range []string{"ping", "doctor"} {
		addr := startHostile(t, "", 60)
		var out, errs strings.Builder
		if status := run(t.Context(), []string{verb, "-timeout", "200ms", "mongodb://" + addr}, &out, &errs); status != failed {
			t.Errorf("%s: status %d", verb, status)
		}
		if !strings.Contains(out.String()+errs.String(), "more than 50 further members") {
			t.Errorf("%s: %s%s", verb, &out, &errs)
		}
	}
}

// TestRunMaxTime runs commands with a maxTimeMS of their own.
func TestRunMaxTime(t *testing.T) {
	addr := startHostile(t, "", 0)
	for _, timeout := range []string{"0s", "30s"} {
		for _, cmd := range []string{`{"find": "c", "maxTimeMS": 100}`, `{"ping": 1}`} {
			out, _ := tool(t, succeeded, "run", "-timeout", timeout, "mongodb://"+addr, cmd)
			if !strings.Contains(out, `"ok":1`) {
				t.Errorf("%s: %s", cmd, out)
			}
		}
	}
}
