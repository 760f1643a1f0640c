package interop

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"allium/mongotest"

	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// refused connects and wants the server's refusal of the credentials.
func refused(t *testing.T, d *mongotest.Deployment, change func(*options.ClientOptions)) {
	t.Helper()
	p := connect(t, d, change)
	err := p.client.Ping(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "auth error") || !strings.Contains(err.Error(), "AuthenticationFailed") {
		t.Errorf("a wrong password: %v", err)
	}
}

func TestOfficialAuthentication(t *testing.T) {
	for name, kind := range map[string]mongotest.Option{
		"standalone": mongotest.Standalone(), "replicaset": mongotest.ReplicaSet(3), "sharded": mongotest.Sharded(2, 2), "loadbalanced": mongotest.LoadBalanced(2),
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			d := mongotest.Start(t, kind, mongotest.Auth("root", "pässword"))
			for _, u := range []mongotest.User{
				{Name: "old", Password: "secret", Mechanisms: []string{"SCRAM-SHA-1"}, Roles: []string{"root"}},
				{Name: "new", Password: "secret", Mechanisms: []string{"SCRAM-SHA-256"}, Roles: []string{"root"}},
				{Name: "ldap", Password: "secret", DB: "$external", Roles: []string{"root"}},
				{Name: "local", Password: "secret", DB: "interop", Roles: []string{"readWrite"}},
			} {
				if err := d.AddUser(u); err != nil {
					t.Fatal(err)
				}
			}
			cred := func(mechanism, source, user, password string) func(*options.ClientOptions) {
				return func(o *options.ClientOptions) {
					o.SetAuth(options.Credential{AuthMechanism: mechanism, AuthSource: source, Username: user, Password: password})
				}
			}
			for _, tt := range []struct{ mechanism, source, user, password string }{
				{"", "", "root", "pässword"},
				{"", "", "root", "pa\u0308ssword"}, // SASLprep makes them equal
				{"SCRAM-SHA-1", "", "root", "pässword"},
				{"SCRAM-SHA-256", "", "root", "pässword"},
				{"", "", "old", "secret"}, {"SCRAM-SHA-1", "", "old", "secret"},
				{"", "", "new", "secret"}, {"SCRAM-SHA-256", "", "new", "secret"},
				{"", "interop", "local", "secret"},
				{"PLAIN", "$external", "ldap", "secret"},
			} {
				t.Run(fmt.Sprint(tt.mechanism, " ", tt.user), func(t *testing.T) {
					p := connect(t, d, cred(tt.mechanism, tt.source, tt.user, tt.password))
					must(p.db.Collection("c").InsertOne(ctx, doc("by", tt.user)))(t)
					var status struct {
						AuthInfo struct {
							AuthenticatedUsers []struct{ User, DB string }
						}
					}
					if err := p.db.RunCommand(ctx, doc("connectionStatus", 1)).Decode(&status); err != nil || len(status.AuthInfo.AuthenticatedUsers) != 1 ||
						status.AuthInfo.AuthenticatedUsers[0].User != tt.user {
						t.Errorf("connection status %+v, %v", status, err)
					}
					refused(t, d, cred(tt.mechanism, tt.source, tt.user, tt.password+"!"))
				})
			}
			refused(t, d, cred("SCRAM-SHA-256", "", "old", "secret"))
			refused(t, d, cred("", "", "nobody", "secret"))

			host := d.Hosts()[0]
			nobody := connect(t, d, func(o *options.ClientOptions) {
				o.Auth = nil
				if name != "loadbalanced" {
					o.ApplyURI("mongodb://" + host + "/?directConnection=true")
				}
			})
			_, err := nobody.db.Collection("c").InsertOne(ctx, doc())
			wantCode(t, err, 13)
		})
	}
}

func TestOfficialTLS(t *testing.T) {
	for name, kind := range map[string]mongotest.Option{"replicaset": mongotest.ReplicaSet(3), "sharded": mongotest.Sharded(2, 2), "loadbalanced": mongotest.LoadBalanced(2)} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			d := mongotest.Start(t, kind, mongotest.TLS(), mongotest.Auth("root", "secret"))
			ca, certKey, err := d.WriteTLSFiles(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if err := d.AddUser(mongotest.User{Name: d.ClientSubject(), DB: "$external", Roles: []string{"root"}}); err != nil {
				t.Fatal(err)
			}
			files := "&tlsCAFile=" + url.QueryEscape(ca) + "&tlsCertificateKeyFile=" + url.QueryEscape(certKey)
			for way, change := range map[string]func(*options.ClientOptions){
				"a tls.Config":       func(o *options.ClientOptions) { o.SetTLSConfig(d.TLSConfig()) },
				"files in the URI":   func(o *options.ClientOptions) { o.ApplyURI(d.URI() + files) },
				"the authority only": func(o *options.ClientOptions) { o.ApplyURI(d.URI() + "&tlsCAFile=" + url.QueryEscape(ca)) },
				"X.509": func(o *options.ClientOptions) {
					o.ApplyURI(strings.Replace(d.URI(), "root:secret@", "", 1) + files).
						SetAuth(options.Credential{AuthMechanism: "MONGODB-X509"})
				},
				"X.509 with its name": func(o *options.ClientOptions) {
					o.ApplyURI(strings.Replace(d.URI(), "root:secret@", "", 1) + files).
						SetAuth(options.Credential{AuthMechanism: "MONGODB-X509", Username: d.ClientSubject()})
				},
			} {
				t.Run(way, func(t *testing.T) {
					must(connect(t, d, change).db.Collection("c").InsertOne(ctx, doc("way", way)))(t)
				})
			}
			t.Run("X.509 without a certificate", func(t *testing.T) {
				refused(t, d, func(o *options.ClientOptions) {
					o.ApplyURI(strings.Replace(d.URI(), "root:secret@", "", 1) + "&tlsCAFile=" + url.QueryEscape(ca)).
						SetAuth(options.Credential{AuthMechanism: "MONGODB-X509"})
				})
			})
			t.Run("unknown authority", func(t *testing.T) {
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				p := connect(t, d, func(o *options.ClientOptions) { o.SetServerSelectionTimeout(1) })
				if err := p.client.Ping(ctx, nil); err == nil {
					t.Error("a client that does not know the authority connects")
				}
			})
		})
	}
}

// tap is a dialer that looks at what clients send and get.
type tap struct {
	mu  sync.Mutex
	ids map[string]int // "sent" or "received" and the compressor's number: messages
}

func (w *tap) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &tapped{Conn: c, w: w}, nil
}

type tapped struct {
	net.Conn
	w        *tap
	out, in  []byte // what has not been looked at yet
	skipping [2]int // bytes left of the current message
}

func (c *tapped) Write(b []byte) (int, error) {
	c.out = c.w.look("sent", append(c.out, b...), &c.skipping[0])
	return c.Conn.Write(b)
}

func (c *tapped) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.in = c.w.look("received", append(c.in, b[:n]...), &c.skipping[1])
	return n, err
}

// look counts the OP_COMPRESSED messages in b by compressor, and returns what it could not decide
// on yet.
func (w *tap) look(way string, b []byte, skip *int) []byte {
	for {
		n := min(*skip, len(b))
		b, *skip = b[n:], *skip-n
		if len(b) < 25 && (len(b) < 16 || b[12] == 0xdc) {
			return b
		}
		length := int(b[0]) | int(b[1])<<8 | int(b[2])<<16 | int(b[3])<<24
		if b[12] == 0xdc && b[13] == 0x07 { // 2012: OP_COMPRESSED
			w.mu.Lock()
			w.ids[fmt.Sprint(way, " ", b[24])]++
			w.mu.Unlock()
		}
		*skip = length
	}
}

// TestOfficialCompression runs with each compressor and looks at the bytes: both sides compress.
func TestOfficialCompression(t *testing.T) {
	clusters(t, func(t *testing.T, p *peer) {
		for i, compressor := range []string{"snappy", "zlib", "zstd"} {
			t.Run(compressor, func(t *testing.T) {
				ctx := t.Context()
				w := &tap{ids: map[string]int{}}
				c := connect(t, p.d, func(o *options.ClientOptions) { o.SetCompressors([]string{compressor}).SetDialer(w) })
				coll := c.db.Collection(compressor)
				long := strings.Repeat("all work and no play ", 10_000)
				docs := make([]any, 20)
				for i := range docs {
					docs[i] = doc("_id", i, "text", long)
				}
				must(coll.InsertMany(ctx, docs))(t)
				cur := must(coll.Find(ctx, doc(), options.Find().SetBatchSize(6)))(t)
				n := 0
				for cur.Next(ctx) {
					if text, _ := cur.Current.Lookup("text").StringValueOK(); text != long {
						t.Fatal("the text comes back changed")
					}
					n++
				}
				if cur.Err() != nil || n != len(docs) {
					t.Fatalf("%d documents, %v", n, cur.Err())
				}
				w.mu.Lock()
				defer w.mu.Unlock()
				for _, way := range []string{"sent", "received"} {
					if got := w.ids[fmt.Sprint(way, " ", i+1)]; got < 5 { // an insert, a find, three getMores
						t.Errorf("%d messages %s with %s; all: %v", got, way, compressor, w.ids)
					}
				}
				if len(w.ids) != 2 {
					t.Errorf("other compressors were used: %v", w.ids)
				}
			})
		}
	})
}

func TestOfficialUnixSocket(t *testing.T) {
	d := mongotest.Start(t, mongotest.Standalone(), mongotest.UnixSockets(t.TempDir()))
	p := connect(t, d, func(o *options.ClientOptions) {
		o.ApplyURI("mongodb://" + url.QueryEscape(d.Node(0).SocketPath()) + "/")
		o.SetDialer(unixOnly{})
	})
	must(p.db.Collection("c").InsertOne(t.Context(), doc("_id", 1)))(t)
}

// unixOnly is a dialer that refuses everything but Unix sockets.
type unixOnly struct{}

func (unixOnly) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if network != "unix" {
		return nil, fmt.Errorf("dialed %s %s", network, address)
	}
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}

// TestOfficialInMemory connects the official driver to a deployment that is not on any real
// network.
func TestOfficialInMemory(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(3), mongotest.InMemory())
	p := connect(t, d, func(o *options.ClientOptions) { o.SetDialer(d) })
	must(p.db.Collection("c").InsertOne(t.Context(), doc("_id", 1)))(t)
}

// TestOfficialVersions connects to each version of the server that the driver supports.
func TestOfficialVersions(t *testing.T) {
	for _, version := range []string{"4.4", "5.0", "6.0", "7.0", "8.0", "8.2"} {
		for _, r := range replicated {
			if r.name == "loadbalanced" && version < "5.0" {
				continue // load balancers came with 5.0
			}
			t.Run(version+"/"+r.name, func(t *testing.T) {
				p := official(t, r.kind, mongotest.Version(version))
				must(p.db.Collection("c").InsertOne(t.Context(), doc("_id", 1)))(t)
				var info struct{ Version string }
				if err := p.db.RunCommand(t.Context(), doc("buildInfo", 1)).Decode(&info); err != nil || !strings.HasPrefix(info.Version, version+".") {
					t.Errorf("build info %+v, %v", info, err)
				}
			})
		}
	}
}
