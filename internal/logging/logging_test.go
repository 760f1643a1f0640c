package logging

import (
	"bytes"
	"context"
	"encoding/binary"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"allium/bson"
)

func environment(m map[string]string) func(string) string {
	return func(name string) string { return m[name] }
}

func TestLevels(t *testing.T) {
	ctx := context.Background()
	handler := slog.NewTextHandler(&bytes.Buffer{}, &slog.HandlerOptions{Level: slog.LevelInfo})
	for _, tt := range []struct {
		name     string
		o        Options
		env      map[string]string
		enabled  map[Component]slog.Level
		disabled map[Component]slog.Level
		warnings int
	}{
		{name: "nothing is logged by default", disabled: map[Component]slog.Level{Command: LevelEmergency}},
		{name: "all", env: map[string]string{"MONGODB_LOG_ALL": "Debug"},
			enabled:  map[Component]slog.Level{Command: slog.LevelDebug, Connection: slog.LevelDebug},
			disabled: map[Component]slog.Level{Command: LevelTrace}},
		{name: "a component wins over all", env: map[string]string{"MONGODB_LOG_ALL": "debug", "MONGODB_LOG_TOPOLOGY": "off"},
			enabled:  map[Component]slog.Level{ServerSelection: slog.LevelDebug},
			disabled: map[Component]slog.Level{Topology: LevelEmergency}},
		{name: "a wrong value is ignored", env: map[string]string{"MONGODB_LOG_ALL": "loud", "MONGODB_LOG_COMMAND": "info"},
			enabled:  map[Component]slog.Level{Command: slog.LevelInfo},
			disabled: map[Component]slog.Level{Topology: LevelEmergency}, warnings: 1},
		{name: "the program wins", o: Options{Levels: map[Component]slog.Level{Command: slog.LevelError}},
			env:      map[string]string{"MONGODB_LOG_COMMAND": "debug"},
			enabled:  map[Component]slog.Level{Command: slog.LevelError},
			disabled: map[Component]slog.Level{Command: slog.LevelWarn}},
		{name: "a handler's own level", o: Options{Handler: handler},
			enabled:  map[Component]slog.Level{Connection: slog.LevelInfo},
			disabled: map[Component]slog.Level{Connection: slog.LevelDebug}},
	} {
		l, warnings := New(tt.o, environment(tt.env))
		for c, level := range tt.enabled {
			if !l.Enabled(ctx, c, level) {
				t.Errorf("%s: %v is not enabled for %v", tt.name, c, level)
			}
		}
		for c, level := range tt.disabled {
			if l.Enabled(ctx, c, level) {
				t.Errorf("%s: %v is enabled for %v", tt.name, c, level)
			}
		}
		if len(warnings) != tt.warnings {
			t.Errorf("%s: warnings %q", tt.name, warnings)
		}
	}
}

func TestLogToFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	env := environment(map[string]string{"MONGODB_LOG_CONNECTION": "debug", "MONGODB_LOG_PATH": path})
	for range 2 { // the second one appends
		l, warnings := New(Options{}, env)
		if len(warnings) > 0 {
			t.Fatal(warnings)
		}
		l.Log(context.Background(), Connection, slog.LevelDebug, "Connection created", Server(nil, "h:1")...)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(b), `msg="Connection created" component=connection serverHost=h serverPort=1`); n != 2 {
		t.Errorf("log holds the message %d times:\n%s", n, b)
	}
}

// How long a document may be comes from the program, else from the environment, and where the
// messages go from the environment. What is wrong there is ignored with a warning, and no error.
func TestEnvironment(t *testing.T) {
	long := bson.Raw(bson.AppendString([]byte{0, 0, 0, 0}, "a", strings.Repeat("x", 2*DefaultMaxDocumentLength)))
	long = append(long, 0)
	binary.LittleEndian.PutUint32(long, uint32(len(long)))
	for value, want := range map[string]struct{ length, warnings int }{
		"":    {1000, 0}, // as the specification has it
		"20":  {20, 0},
		"0":   {0, 0},
		"-1":  {DefaultMaxDocumentLength, 1},
		"1k":  {DefaultMaxDocumentLength, 1},
		"1.5": {DefaultMaxDocumentLength, 1},
	} {
		env := environment(map[string]string{"MONGODB_LOG_MAX_DOCUMENT_LENGTH": value})
		l, warnings := New(Options{Handler: slog.DiscardHandler}, env)
		if got := l.Document(long); len(got) != want.length+len("...") || len(warnings) != want.warnings {
			t.Errorf("length %q: %d bytes, warnings %q", value, len(got), warnings)
		}
		l, warnings = New(Options{Handler: slog.DiscardHandler, MaxDocumentLength: 7}, env)
		if got := l.Document(long); len(got) != 7+len("...") || len(warnings) != 0 {
			t.Errorf("length %q: %d bytes though the program says 7, warnings %q", value, len(got), warnings)
		}
	}
	for path, warnings := range map[string]int{"": 0, "stderr": 0, "StdErr": 0, "stdout": 0, t.TempDir(): 1, filepath.Join(t.TempDir(), "none", "log"): 1} {
		old := [2]*os.File{os.Stdout, os.Stderr}
		file, err := os.Create(filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		other, err := os.Create(filepath.Join(t.TempDir(), "other"))
		if err != nil {
			t.Fatal(err)
		}
		if os.Stdout, os.Stderr = other, file; path == "stdout" {
			os.Stdout, os.Stderr = file, other
		}
		l, got := New(Options{}, environment(map[string]string{"MONGODB_LOG_ALL": "debug", "MONGODB_LOG_PATH": path}))
		l.Log(context.Background(), Command, slog.LevelDebug, "Command started")
		os.Stdout, os.Stderr = old[0], old[1]
		file.Close()
		other.Close()
		if text, err := os.ReadFile(file.Name()); err != nil || !strings.Contains(string(text), "Command started") || len(got) != warnings {
			t.Errorf("path %q: %q, %v, warnings %q", path, text, err, got)
		}
	}
}

// records keeps what it handles.
type records struct {
	slog.Handler

	all []slog.Record
}

func (h *records) Handle(_ context.Context, r slog.Record) error {
	h.all = append(h.all, r)
	return nil
}

// A message has no place in the source: that of the driver would help nobody.
func TestMessagesHaveNoSource(t *testing.T) {
	h := &records{Handler: slog.DiscardHandler}
	l, _ := New(Options{Handler: h}, environment(nil))
	l.Log(context.Background(), Command, slog.LevelInfo, "m", slog.Int("n", 1))
	if len(h.all) != 1 || h.all[0].PC != 0 || h.all[0].Message != "m" || h.all[0].NumAttrs() != 2 {
		t.Errorf("%+v", h.all)
	}
}

func TestTruncate(t *testing.T) {
	l, _ := New(Options{MaxDocumentLength: 4, Handler: slog.DiscardHandler}, environment(nil))
	for in, want := range map[string]string{"abcd": "abcd", "abcde": "abcd...", "abcé": "abc...", "ééé": "éé...", "\x80\x80\x80\x80\x80": "..."} {
		if got := truncate(in, l.maxDoc); got != want {
			t.Errorf("Truncate(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestServer(t *testing.T) {
	for addr, want := range map[string]string{
		"h:1": "[serverHost=h serverPort=1]", "[::1]:2": "[serverHost=::1 serverPort=2]", "/tmp/x.sock": "[serverHost=/tmp/x.sock]",
	} {
		var b strings.Builder
		for _, a := range Server(nil, addr) {
			b.WriteString(" " + a.String())
		}
		if got := "[" + strings.TrimSpace(b.String()) + "]"; got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
}

func TestDocument(t *testing.T) {
	doc := bson.Raw(bson.AppendInt32(nil, "a", 1))
	doc = append(append(append([]byte{0, 0, 0, 0}, bson.AppendString(doc, "b", "x\"y")...), bson.AppendArray(nil, "c", bson.Raw{5, 0, 0, 0, 0})...), 0)
	doc[0] = byte(len(doc))
	l, _ := New(Options{Handler: slog.DiscardHandler}, environment(nil))
	if got, want := l.Document(doc), `{"a":1,"b":"x\"y","c":[]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	l, _ = New(Options{Handler: slog.DiscardHandler, MaxDocumentLength: 5}, environment(nil))
	if got, want := l.Document(doc), `{"a":...`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestBrokenValue: what a server sends is logged before anybody looks into it. A value that has no
// text, such as code with a scope of unknown types, is null, and what stands around it is shown.
func TestBrokenValue(t *testing.T) {
	scope := []byte{8, 0, 0, 0, 0x7e, 'a', 0, 0}
	code := append([]byte{4 + 4 + 2 + 8, 0, 0, 0, 2, 0, 0, 0, 'f', 0}, scope...)
	start, doc := bson.BeginDocument(nil)
	doc = bson.AppendInt32(doc, "before", 1)
	doc = bson.AppendRawValue(doc, "broken", bson.RawValue{Type: bson.TypeCodeWithScope, Value: code})
	doc = bson.EndDocument(bson.AppendInt32(doc, "behind", 2), start)
	l, _ := New(Options{Handler: slog.DiscardHandler}, environment(nil))
	if got, want := l.Document(doc), `{"before":1,"broken":null,"behind":2}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestLargeValues checks that a value of many MiB is not converted as a whole for the part that is
// logged.
func TestLargeValues(t *testing.T) {
	l, _ := New(Options{Handler: slog.DiscardHandler, MaxDocumentLength: 20}, environment(nil))
	for name, tt := range map[string]struct {
		value any
		want  string
	}{
		"string": {strings.Repeat("ü", 1<<20), `{"a":"üüüüüüü...`},
		"binary": {bson.Binary{Data: make([]byte, 4<<20)}, `{"a":{"$binary":{"ba...`},
	} {
		doc, err := bson.Marshal(bson.D{{Key: "a", Value: tt.value}})
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Document(doc); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		l.Document(doc)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<10 {
			t.Errorf("%s: %d bytes are allocated", name, n)
		}
	}
}
