// Package mistakes holds ordinary mistakes of people who use the driver. Its test makes every one
// of them against mongotest, compares the error with its exact text in testdata/allium.json, and
// makes docs/errors.md and docs/errors-operations.md from it. testdata/official.json holds what the
// official driver answers, as a test in module interop has recorded it.
package mistakes

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/fakeserver"
	"allium/mongotest"
)

// A Mistake is something that people do, and what the driver answers.
type Mistake struct {
	// Name says what was done, in a few words. It is the key under which the text of the official
	// driver is stored.
	Name string
	// Code is the line or the lines that are wrong.
	Code string
	// Do says what to do about it, where the text alone may not be enough.
	Do string
	// Make makes the mistake and returns the error. What the driver warns of is an error, too.
	Make func(ctx context.Context, e *Env) error
}

// A Section is a group of mistakes under one heading.
type Section struct {
	Title      string
	Operations bool // it is on the page of operations
	Mistakes   []Mistake
}

// Sections returns all mistakes.
func Sections() []Section {
	return []Section{connectionStrings, connecting, lateness, commands, documents, cursors, writes, schema}
}

// Env is what mistakes are made with: deployments that are started when they are needed.
type Env struct {
	t           testing.TB
	dir         string
	deployments map[string]*mongotest.Deployment
	names       []string // pairs of what a text holds and what stands for it
}

// NewEnv returns an environment for one test.
func NewEnv(t testing.TB) *Env {
	return &Env{t: t, dir: t.TempDir(), deployments: map[string]*mongotest.Deployment{}}
}

// Deployment returns the deployment of this name, which is started with the options when it is
// asked for the first time.
func (e *Env) Deployment(name string, opts ...mongotest.Option) *mongotest.Deployment {
	d := e.deployments[name]
	if d == nil {
		d = mongotest.Start(e.t, opts...)
		e.deployments[name] = d
		for i, host := range d.Hosts() {
			e.Show(host, fmt.Sprintf("localhost:%d", 27017+i))
		}
	}
	return d
}

// Show makes Clean put one text in place of another.
func (e *Env) Show(text, as string) { e.names = append(e.names, text, as) }

// Set returns a replica set of one member.
func (e *Env) Set() *mongotest.Deployment {
	return e.Deployment("set", mongotest.ReplicaSet(1), mongotest.Version("8.0"))
}

// Standalone returns a single server.
func (e *Env) Standalone() *mongotest.Deployment {
	return e.Deployment("standalone", mongotest.Standalone(), mongotest.Version("8.0"))
}

// TLS returns a server that speaks TLS only.
func (e *Env) TLS() *mongotest.Deployment {
	return e.Deployment("tls", mongotest.Standalone(), mongotest.TLS(), mongotest.Version("8.0"))
}

// Auth returns a server with the user ada, whose password is lovelace, and who may do everything.
func (e *Env) Auth() *mongotest.Deployment {
	return e.Deployment("auth", mongotest.Standalone(), mongotest.Auth("ada", "lovelace"), mongotest.Version("8.0"))
}

// File writes a file and returns its path.
func (e *Env) File(name, content string) string {
	path := filepath.Join(e.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		e.t.Fatal(err)
	}
	e.Show(path, "/etc/ssl/"+name)
	return path
}

// Dir returns a folder for files.
func (e *Env) Dir() string {
	e.Show(e.dir, "/etc/ssl")
	return e.dir
}

// Closed returns the address of a port that nobody listens on.
func (e *Env) Closed() string {
	e.Show(fakeserver.Refuses, "localhost:27017")
	return fakeserver.Refuses
}

// Listen returns the address of a server that is no MongoDB server: it answers each connection with
// a text.
func (e *Env) Listen(answer string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				c.Read(make([]byte, 1))
				c.Write([]byte(answer))
			}()
		}
	}()
	e.Show(l.Addr().String(), "localhost:8080")
	return l.Addr().String()
}

var (
	durations = regexp.MustCompile(`\b(after|of|within) \d+(\.\d+)?(µs|ms|s)\b`)
	lefts     = regexp.MustCompile(`\b\d+(\.\d+)?(ns|µs|ms|s) (is|was) left`)
	trips     = regexp.MustCompile(`at least \d+(\.\d+)?(ns|µs|ms|s)\b`)
	objectIDs = regexp.MustCompile(`\b[0-9a-f]{24}\b`)
	uuids     = regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)
	ports     = regexp.MustCompile(`(127\.0\.0\.1|localhost):(\d{4,5})->`)
)

// Clean returns a text with what differs from run to run replaced: addresses, times and
// identifiers.
func (e *Env) Clean(text string) string {
	text = strings.NewReplacer(e.names...).Replace(text)
	text = durations.ReplaceAllString(text, "$1 100ms")
	text = lefts.ReplaceAllString(text, "1ms $3 left")
	text = trips.ReplaceAllString(text, "at least 100µs")
	text = objectIDs.ReplaceAllString(text, "507f1f77bcf86cd799439011")
	text = uuids.ReplaceAllString(text, "00112233-4455-6677-8899-aabbccddeeff")
	return ports.ReplaceAllString(text, "$1:50000->")
}

// open opens a client that gives up early, and closes it when the test ends.
func (e *Env) open(uri string, opts ...allium.ClientOptions) (*allium.Client, error) {
	var o allium.ClientOptions
	if len(opts) > 0 {
		o = opts[0]
	}
	if o.ServerSelectionTimeout == nil {
		o.ServerSelectionTimeout = new(100 * time.Millisecond)
	}
	client, err := allium.Open(uri, o)
	if err == nil {
		e.t.Cleanup(func() { client.Close(context.Background()) })
	}
	return client, err
}

// client returns a client that must open.
func (e *Env) client(uri string, opts ...allium.ClientOptions) *allium.Client {
	client, err := e.open(uri, opts...)
	if err != nil {
		e.t.Fatal(err)
	}
	return client
}

// users returns the collection that most mistakes are made with, in a replica set of one member. It
// holds two documents.
func (e *Env) users() *allium.UntypedCollection {
	client := e.client(e.Set().URI(), allium.ClientOptions{ServerSelectionTimeout: new(10 * time.Second)})
	users := client.Database("app").Collection("users")
	if err := users.Drop(context.Background()); err != nil {
		e.t.Fatal(err)
	}
	_, err := users.InsertMany(context.Background(), []bson.D{
		{{Key: "_id", Value: 1}, {Key: "name", Value: "Ada"}, {Key: "age", Value: 36}},
		{{Key: "_id", Value: 2}, {Key: "name", Value: "Grace"}, {Key: "age", Value: 85}},
	})
	if err != nil {
		e.t.Fatal(err)
	}
	return users
}

// warning opens a client and returns what the driver warns of, without a logger: on the standard
// logger of the program.
func warning(e *Env, uri string) error {
	var b bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&b,
		&slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})))
	defer slog.SetDefault(before)
	if _, err := e.open(uri); err != nil {
		return err
	}
	if b.Len() == 0 {
		return nil
	}
	return warned(strings.TrimSpace(b.String()))
}

// warned is a warning that was logged.
type warned string

func (w warned) Error() string { return string(w) }

// ping opens a client and asks the deployment for a sign of life.
func ping(ctx context.Context, e *Env, uri string, opts ...allium.ClientOptions) error {
	client, err := e.open(uri, opts...)
	if err != nil {
		return err
	}
	return client.Ping(ctx)
}

// second drops the value of a call.
func second[T any](_ T, err error) error { return err }

// host returns the address of a deployment's first server.
func host(d *mongotest.Deployment) string { return cmp.Or(d.Hosts()...) }
