package conn

import (
	"bytes"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"allium/bson"
)

// clearEnvironment makes the test see no platform and no container but those that it sets.
func clearEnvironment(t *testing.T, env map[string]string) {
	for _, name := range []string{
		"AWS_EXECUTION_ENV", "AWS_LAMBDA_RUNTIME_API", "AWS_REGION", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "FUNCTIONS_WORKER_RUNTIME",
		"K_SERVICE", "FUNCTION_NAME", "FUNCTION_MEMORY_MB", "FUNCTION_TIMEOUT_SEC", "FUNCTION_REGION", "VERCEL", "VERCEL_REGION",
		"KUBERNETES_SERVICE_HOST",
	} {
		t.Setenv(name, env[name])
	}
	marker := dockerMarker
	dockerMarker = filepath.Join(t.TempDir(), "none")
	t.Cleanup(func() { dockerMarker = marker })
}

// handshakeOf connects and returns what the server got.
func handshakeOf(t *testing.T, m *Metadata) bson.Raw {
	t.Helper()
	got := make(chan bson.Raw, 1)
	dial(t, fakeServer(t, func(p *peer) {
		doc, _ := p.hello()
		got <- doc
		p.read()
	}), &Config{Metadata: m})
	return <-got
}

func clientOf(t *testing.T, m *Metadata) bson.Raw {
	t.Helper()
	doc, ok := handshakeOf(t, m).Lookup("client").Document()
	if !ok {
		t.Fatal("hello has no client document")
	}
	if err := doc.Validate(); err != nil {
		t.Fatal(err)
	}
	if len(doc) > maxMetadata {
		t.Errorf("client document has %d bytes", len(doc))
	}
	return doc
}

// describe prints a document in a simple form: name=value of every leaf.
func describe(doc bson.Raw) string {
	var parts []string
	for key, v := range doc.All() {
		if sub, ok := v.Document(); ok {
			parts = append(parts, key+"{"+describe(sub)+"}")
		} else if s, ok := v.StringValue(); ok {
			parts = append(parts, key+"="+s)
		} else if n, ok := v.AsInt64(); ok {
			parts = append(parts, fmt.Sprintf("%s=%d", key, n))
		}
	}
	return strings.Join(parts, " ")
}

// MongoDB Handshake, prose test 1: environment metadata.
func TestProseHandshake1(t *testing.T) {
	aws := "AWS_Lambda_java8"
	tests := []struct {
		name string
		env  map[string]string
		want string // of env; "" for none
	}{
		{"1 AWS", map[string]string{"AWS_EXECUTION_ENV": aws, "AWS_REGION": "us-east-2", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1024"},
			"name=aws.lambda memory_mb=1024 region=us-east-2"},
		{"2 Azure", map[string]string{"FUNCTIONS_WORKER_RUNTIME": "node"}, "name=azure.func"},
		{"3 GCP", map[string]string{"K_SERVICE": "servicename", "FUNCTION_MEMORY_MB": "1024", "FUNCTION_TIMEOUT_SEC": "60", "FUNCTION_REGION": "us-central1"},
			"name=gcp.func timeout_sec=60 memory_mb=1024 region=us-central1"},
		{"4 Vercel", map[string]string{"VERCEL": "1", "VERCEL_REGION": "cdg1"}, "name=vercel region=cdg1"},
		{"5 several providers", map[string]string{"AWS_EXECUTION_ENV": aws, "FUNCTIONS_WORKER_RUNTIME": "node"}, ""},
		{"6 long string", map[string]string{"AWS_EXECUTION_ENV": aws, "AWS_REGION": strings.Repeat("a", 512)}, "name=aws.lambda"},
		{"7 wrong types", map[string]string{"AWS_EXECUTION_ENV": aws, "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "big"}, "name=aws.lambda"},
		{"8 no Lambda", map[string]string{"AWS_EXECUTION_ENV": "EC2"}, ""},
		{"9 container", map[string]string{"AWS_EXECUTION_ENV": aws, "AWS_REGION": "us-east-2", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1024", "KUBERNETES_SERVICE_HOST": "1"},
			"name=aws.lambda memory_mb=1024 region=us-east-2 container{orchestrator=kubernetes}"},
		{"Lambda by its other variable", map[string]string{"AWS_LAMBDA_RUNTIME_API": "x"}, "name=aws.lambda"},
		{"Vercel on AWS", map[string]string{"AWS_EXECUTION_ENV": aws, "AWS_REGION": "us-east-2", "VERCEL": "1"}, "name=vercel"},
		{"Vercel, AWS and GCP", map[string]string{"AWS_EXECUTION_ENV": aws, "VERCEL": "1", "K_SERVICE": "x"}, ""},
		{"container alone", map[string]string{"KUBERNETES_SERVICE_HOST": "1"}, "container{orchestrator=kubernetes}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			clearEnvironment(t, tt.env)
			m, err := NewMetadata("app")
			if err != nil {
				t.Fatal(err)
			}
			env, there := clientOf(t, m).Lookup("env").Document()
			if got := describe(env); got != tt.want || there != (tt.want != "") {
				t.Errorf("env is %q, want %q; there is one: %v", got, tt.want, there)
			}
		})
	}
}

// MongoDB Handshake, prose test 2: an arbitrary mechanism in saslSupportedMechs is no error.
func TestProseHandshake2(t *testing.T) {
	addr := fakeServer(t, func(p *peer) {
		p.hello(func(dst []byte) []byte {
			list, dst := bson.BeginArrayElement(dst, "saslSupportedMechs")
			dst = bson.AppendStringValue(bson.AppendIndexHeader(dst, bson.TypeString, 0), "ARBITRARY")
			return bson.EndDocument(dst, list)
		})
		p.read()
	})
	dial(t, addr, &Config{})
}

var library = DriverInfo{Name: "library", Version: "1.2", Platform: "Library Platform"}

// appended returns what was appended to the driver's own name, version and platform.
func appended(t *testing.T, doc bson.Raw) DriverInfo {
	t.Helper()
	cut := func(path ...string) string {
		s, _ := doc.Lookup(path...).StringValue()
		_, rest, _ := strings.Cut(s, "|")
		return rest
	}
	return DriverInfo{cut("driver", "name"), cut("driver", "version"), cut("platform")}
}

// rest describes what an info does not change.
func rest(doc bson.Raw) string {
	var parts []string
	for key, v := range doc.All() {
		if sub, ok := v.Document(); ok && key != "driver" {
			parts = append(parts, key+"{"+describe(sub)+"}")
		}
	}
	return strings.Join(parts, " ")
}

func newMetadata(t *testing.T, infos ...DriverInfo) *Metadata {
	t.Helper()
	clearEnvironment(t, nil)
	m, err := NewMetadata("", infos...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func add(t *testing.T, m *Metadata, info DriverInfo) {
	t.Helper()
	if err := m.Append(info); err != nil {
		t.Fatal(err)
	}
}

func joined(a, b DriverInfo) DriverInfo {
	return DriverInfo{join(a.Name, b.Name), join(a.Version, b.Version), join(a.Platform, b.Platform)}
}

// Client metadata update, prose tests 1 (appended while the client is made) and 2 (afterwards).
func TestProseMetadata1And2(t *testing.T) {
	for _, first := range []bool{true, false} {
		for _, info := range []DriverInfo{
			{"framework", "2.0", "Framework Platform"}, {"framework", "2.0", ""}, {"framework", "", "Framework Platform"}, {"framework", "", ""},
		} {
			clearEnvironment(t, map[string]string{"AWS_LAMBDA_RUNTIME_API": "x", "AWS_REGION": "r"})
			m, err := NewMetadata("app")
			if first {
				m, err = NewMetadata("app", library)
			}
			if err != nil {
				t.Fatal(err)
			}
			if !first {
				add(t, m, library)
			}
			before := clientOf(t, m)
			add(t, m, info)
			after := clientOf(t, m)
			if got, want := appended(t, after), joined(library, info); got != want {
				t.Errorf("%+v: appended %+v, want %+v", info, got, want)
			}
			if a, b := rest(before), rest(after); a != b {
				t.Errorf("%+v: %s became %s", info, a, b)
			}
		}
	}
}

// Client metadata update, prose test 3: several updates with the same data.
func TestProseMetadata3(t *testing.T) {
	for _, info := range []DriverInfo{
		library,
		{"framework", "1.2", "Library Platform"}, {"library", "2.0", "Library Platform"}, {"library", "1.2", "Framework Platform"},
		{"framework", "2.0", "Library Platform"}, {"framework", "1.2", "Framework Platform"}, {"library", "2.0", "Framework Platform"},
	} {
		m := newMetadata(t)
		add(t, m, library)
		add(t, m, info)
		want := joined(library, info)
		if info == library {
			want = library
		}
		if got := appended(t, clientOf(t, m)); got != want {
			t.Errorf("%+v: appended %+v, want %+v", info, got, want)
		}
	}
}

// Client metadata update, prose tests 4 to 6: an info that is there already is not appended again.
func TestProseMetadata4To6(t *testing.T) {
	framework := DriverInfo{"framework", "2.0", "Framework Platform"}
	similar := DriverInfo{"framework", "1.2", "Library Platform"}
	for name, m := range map[string]func() *Metadata{
		"4": func() *Metadata { m := newMetadata(t); add(t, m, library); add(t, m, framework); return m },
		"5": func() *Metadata { return newMetadata(t, library) },
		"6": func() *Metadata { m := newMetadata(t, library); add(t, m, similar); return m },
	} {
		m := m()
		before := clientOf(t, m)
		add(t, m, library)
		if after := clientOf(t, m); !bytes.Equal(before, after) {
			t.Errorf("prose test %s: %s became %s", name, describe(before), describe(after))
		}
	}
}

// Client metadata update, prose tests 7 and 8: an empty string is the same as none.
func TestProseMetadata7And8(t *testing.T) {
	for _, info := range []DriverInfo{{"library", "", "Library Platform"}, {"library", "1.2", ""}} {
		for _, first := range []bool{true, false} {
			m := newMetadata(t, info)
			if !first {
				m = newMetadata(t)
				add(t, m, info)
			}
			before := clientOf(t, m)
			add(t, m, info)
			if after := clientOf(t, m); !bytes.Equal(before, after) {
				t.Errorf("%+v: %s became %s", info, describe(before), describe(after))
			}
		}
	}
}

// Client metadata update, prose test 9.
func TestProseMetadata9(t *testing.T) {
	for _, cfg := range []*Config{{}, {LoadBalanced: true}, {ServerAPI: &ServerAPI{Version: "1"}}} {
		hellos := make(chan bson.Raw, 2)
		addr := fakeServer(t, func(p *peer) {
			doc, _ := p.hello(func(dst []byte) []byte { return bson.AppendObjectID(dst, "serviceId", bson.NewObjectID()) })
			hellos <- doc
			p.read()
		})
		dial(t, addr, cfg)
		m, err := DialMonitor(t.Context(), addr, cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if _, err := m.Handshake(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if v, _ := (<-hellos).Lookup("backpressure").StringValue(); v != "2" {
				t.Errorf("backpressure is %q", v)
			}
		}
	}
}

func TestMetadataNamesTheSystem(t *testing.T) {
	clearEnvironment(t, nil)
	m, err := NewMetadata("app", DriverInfo{})
	if err != nil {
		t.Fatal(err)
	}
	env := environment{os: osInfo{kind: "Linux", name: "Debian", architecture: "amd64", version: "13"}}
	for _, c := range []struct {
		want  string
		empty func(o *osInfo)
	}{
		{`{"type":"Linux","name":"Debian","architecture":"amd64","version":"13"}`, func(*osInfo) {}},
		{`{"type":"Linux","architecture":"amd64","version":"13"}`, func(o *osInfo) { o.name = "" }},
		{`{"type":"Linux"}`, func(o *osInfo) { *o = osInfo{kind: o.kind} }},
	} {
		e := env
		c.empty(&e.os)
		doc := m.encode("driver", "1", "go", &e)
		if got, _ := doc.Lookup("os").Document(); got.String() != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

func TestMetadataTruncation(t *testing.T) {
	clearEnvironment(t, map[string]string{"AWS_EXECUTION_ENV": "AWS_Lambda_java8", "AWS_REGION": "us-east-2", "KUBERNETES_SERVICE_HOST": "1"})
	for n := 0; n < 400; n++ {
		m, err := NewMetadata(strings.Repeat("a", 128), DriverInfo{Platform: strings.Repeat("\u00e9", n)})
		if err != nil {
			t.Fatal(err)
		}
		doc := m.Document()
		if len(doc) > maxMetadata {
			t.Fatalf("%d characters: %d bytes", n, len(doc))
		}
		if err := doc.Validate(); err != nil { // among others, that no character is split
			t.Fatalf("%d characters: %v", n, err)
		}
		has := func(path ...string) bool { return doc.Lookup(path...).Type != 0 }
		for _, path := range [][]string{{"application", "name"}, {"driver", "name"}, {"driver", "version"}, {"os", "type"}} {
			if !has(path...) {
				t.Fatalf("%d characters: %q is missing", n, path)
			}
		}
		// What goes first is gone whenever what goes later is.
		if has("env", "region") && !has("os", "name") || has("os", "name") && !has("env") {
			t.Fatalf("%d characters: wrong order: %s", n, describe(doc))
		}
		if platform, _ := doc.Lookup("platform").StringValue(); !strings.HasPrefix(platform, runtime.Version()) {
			t.Fatalf("%d characters: platform %q", n, platform)
		}
	}
}

func TestMetadataErrors(t *testing.T) {
	if _, err := NewMetadata(strings.Repeat("a", 129)); err == nil {
		t.Error("application name of 129 bytes: no error")
	}
	for _, info := range []DriverInfo{{Name: "a|b"}, {Version: "|"}, {Platform: "x|"}, {Name: "\xff"}, {Name: strings.Repeat("a", 600)}} {
		m := newMetadata(t)
		before := m.Document()
		if err := m.Append(info); err == nil {
			t.Errorf("%.20q: no error", info)
		}
		if !bytes.Equal(before, m.Document()) {
			t.Errorf("%.20q: changed the document", info)
		}
	}
}

// The driver invents no name for an application that has none.
func TestNoApplicationName(t *testing.T) {
	clearEnvironment(t, nil)
	m, err := NewMetadata("")
	if err != nil {
		t.Fatal(err)
	}
	if doc := clientOf(t, m); doc.Lookup("application").Type != 0 {
		t.Errorf("the client document is %s", describe(doc))
	}
}
