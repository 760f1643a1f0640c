package encryption_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"allium"
	"allium/bson"
	"allium/encryption"
	"allium/encryption/kms"
	"allium/event"
	"allium/internal/spectest"
	"allium/mongotest"
)

// This file has what the prose tests of the specification have in common (Client Side Encryption,
// "Prose Tests").

// specDocument reads a document of the specification's tests.
func specDocument(t *testing.T, name string) bson.Raw {
	t.Helper()
	path := filepath.Join(spectest.Find(t), "source/client-side-encryption", filepath.FromSlash(name))
	doc, err := bson.ParseExtJSON(spectest.Read(t, path))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return doc
}

// queryableKeys are the data keys that the encrypted fields of the specification's tests name.
func queryableKeys(t *testing.T) []bson.Raw {
	t.Helper()
	var out []bson.Raw
	collections, _ := specDocument(t, "tests/unified/fle2v2-Compact.json").Lookup("initialData").Array()
	for c := range collections.Values() {
		keys, _ := bson.Raw(c.Value).Lookup("documents").Array()
		for k := range keys.Values() {
			out = append(out, bson.Raw(k.Value))
		}
	}
	if len(out) == 0 {
		t.Fatal("no data keys")
	}
	return out
}

func uuidOf(t *testing.T, v bson.RawValue) *bson.UUID {
	t.Helper()
	b, ok := v.Binary()
	id, err := b.UUID()
	if !ok || err != nil {
		t.Fatalf("%s is no UUID", v)
	}
	return &id
}

// localKMS is the key service of most tests.
func localKMS() kms.Providers { return kms.Providers{"local": kms.Local{Key: localMaster}} }

// prose is a deployment with a client that does not encrypt, and a Client whose key vault has the
// data keys of a test.
type prose struct {
	t     *testing.T
	d     *mongotest.Deployment
	plain *allium.Client
	keys  *encryption.Client
	// dialer connects the clients to a deployment in memory, nil for another one.
	dialer allium.Dialer
}

func startProse(t *testing.T, keys []bson.Raw, opts ...mongotest.Option) *prose {
	t.Helper()
	p := &prose{t: t, d: mongotest.Start(t, append([]mongotest.Option{mongotest.ReplicaSet(1)}, opts...)...)}
	return p.begin(keys)
}

func (p *prose) begin(keys []bson.Raw) *prose {
	p.t.Helper()
	p.plain, _ = p.open(allium.ClientOptions{})
	if len(keys) > 0 {
		p.insert("keyvault.datakeys", keys...)
	}
	p.keys = p.encryption(encryption.Options{KeyOptions: encryption.KeyOptions{KMS: localKMS()}})
	return p
}

// naming returns the key services with hosts that master keys may name: only tests have keys there.
func naming(p kms.Providers, hosts ...string) kms.Providers {
	out := kms.Providers{}
	for name, v := range p {
		switch v := v.(type) {
		case kms.AWS:
			v.Hosts = hosts
			out[name] = v
		case kms.Azure:
			v.Hosts = hosts
			out[name] = v
		case kms.GCP:
			v.Hosts = hosts
			out[name] = v
		case kms.KMIP:
			v.Hosts = hosts
			out[name] = v
		default:
			out[name] = v
		}
	}
	return out
}

func (p *prose) encryption(o encryption.Options) *encryption.Client {
	p.t.Helper()
	o.KeyVault = "keyvault.datakeys"
	o.KMS = naming(o.KMS, "127.0.0.1", "doesnotexist.invalid")
	if o.KeyVaultClient == nil {
		o.KeyVaultClient = p.plain
	}
	c, err := encryption.New(o)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { c.Close() })
	return c
}

func (p *prose) insert(ns string, docs ...bson.Raw) {
	p.t.Helper()
	db, name, _ := strings.Cut(ns, ".")
	if _, err := allium.CollectionOf[bson.Raw](p.plain.Database(db), name).InsertMany(p.t.Context(), docs); err != nil {
		p.t.Fatal(err)
	}
}

// create makes a collection of the database db.
func (p *prose) create(name, option string, value any) {
	p.t.Helper()
	cmd := bson.D{{Key: "create", Value: name}}
	if option != "" {
		cmd = append(cmd, bson.E{Key: option, Value: value})
	}
	if _, err := p.plain.Database("db").RunCommand(p.t.Context(), cmd); err != nil {
		p.t.Fatal(err)
	}
}

func validator(schema any) bson.D { return bson.D{{Key: "$jsonSchema", Value: schema}} }

// auto opens a client that encrypts with the local key service, if o has no other.
func (p *prose) auto(o encryption.AutoOptions, co allium.ClientOptions) (*allium.Client, *recorder) {
	p.t.Helper()
	o.KeyVault = "keyvault.datakeys"
	if o.KMS == nil {
		o.KMS = localKMS()
	}
	co.Encryption = encryption.Auto(o)
	return p.open(co)
}

// open opens a client whose events are recorded.
func (p *prose) open(co allium.ClientOptions) (*allium.Client, *recorder) {
	p.t.Helper()
	r := &recorder{}
	co.CommandMonitor = &event.CommandMonitor{Started: r.start, Succeeded: r.succeed, Failed: r.fail}
	co.ServerMonitor = &event.ServerMonitor{TopologyOpening: func(*event.TopologyOpening) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.clients++
	}}
	if p.dialer != nil {
		co.Dialer = p.dialer
	}
	c, err := allium.Open(p.d.URI(), co)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { c.Close(context.Background()) })
	return c, r
}

// recorder keeps the events of a client.
type recorder struct {
	mu        sync.Mutex
	clients   int        // topologies that were opened
	started   []string   // "command database"
	commands  []bson.Raw // the same
	succeeded map[string]bson.Raw
	failed    map[string]error
}

func (r *recorder) start(_ context.Context, e *event.CommandStarted) {
	db, _ := e.Command.Lookup("$db").StringValue()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started = append(r.started, fmt.Sprint(e.CommandName, " ", db))
	r.commands = append(r.commands, bytes.Clone(e.Command))
}

func (r *recorder) succeed(_ context.Context, e *event.CommandSucceeded) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.succeeded == nil {
		r.succeeded = map[string]bson.Raw{}
	}
	r.succeeded[e.CommandName] = bytes.Clone(e.Reply)
}

func (r *recorder) fail(_ context.Context, e *event.CommandFailed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.failed = map[string]error{}
	}
	r.failed[e.CommandName] = e.Failure
}

// opened closes the client whose events these are and returns how many topologies it has opened.
// Such events come on a goroutine of the client's own, which Close waits for.
func (r *recorder) opened(ctx context.Context, c *allium.Client) (int, error) {
	err := c.Close(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.clients, err
}

// outcome returns the last reply to a command, and its last failure.
func (r *recorder) outcome(command string) (bson.Raw, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.succeeded[command], r.failed[command]
}

// count returns how many commands of a name were started.
func (r *recorder) count(name string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, s := range r.started {
		if strings.HasPrefix(s, name+" ") {
			n++
		}
	}
	return n
}

func (r *recorder) expect(t *testing.T, who string, want ...string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.started, want) {
		t.Errorf("%s has sent %q, want %q", who, r.started, want)
	}
}

// concat returns the elements of documents in one.
func concat(docs ...any) bson.Raw {
	start, dst := bson.BeginDocument(nil)
	for _, d := range docs {
		dst = append(dst, bson.Raw(must(bson.Marshal(d))).Elements()...)
	}
	return bson.EndDocument(dst, start)
}
