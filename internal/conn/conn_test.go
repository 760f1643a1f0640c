package conn

import (
	"errors"
	"strings"
	"testing"

	"allium/bson"
	"allium/event"
	"allium/mongoerr"
)

func TestDialAndRoundTrip(t *testing.T) {
	c := dial(t, fakeServer(t, echo), &Config{})
	d := c.Hello()
	if d == nil || d.Kind != event.Standalone || d.MaxWireVersion != 25 || d.ServerConnectionID == nil || *d.ServerConnectionID != 7 {
		t.Fatalf("hello = %+v", d)
	}
	for range 3 {
		r, err := c.RoundTrip(t.Context(), command("ping"))
		if err != nil {
			t.Fatal(err)
		}
		if ok, _ := r.Body.Lookup("ok").Double(); ok != 1 {
			t.Fatalf("reply %x", []byte(r.Body))
		}
		r.Release()
	}
}

func TestFirstHello(t *testing.T) {
	tests := []struct {
		name    string
		cfg     Config
		command string
		has     []string
		hasNot  []string
	}{
		{"plain", Config{}, "isMaster", []string{"helloOk", "backpressure", "client", "compression"}, []string{"loadBalanced", "apiVersion"}},
		{"stable API", Config{ServerAPI: &ServerAPI{Version: "1", Strict: new(false)}}, "hello",
			[]string{"apiVersion", "apiStrict"}, []string{"helloOk", "apiDeprecationErrors"}},
		{"load balanced", Config{LoadBalanced: true}, "hello", []string{"loadBalanced"}, []string{"helloOk"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := make(chan bson.Raw, 1)
			dial(t, fakeServer(t, func(p *peer) {
				doc, _ := p.hello(func(dst []byte) []byte { return bson.AppendObjectID(dst, "serviceId", bson.NewObjectID()) })
				got <- doc
				p.read()
			}), &tt.cfg)
			doc := <-got
			for key := range doc.All() {
				if key != tt.command {
					t.Errorf("command is %s, want %s", key, tt.command)
				}
				break
			}
			for _, key := range tt.has {
				if doc.Lookup(key).Type == 0 {
					t.Errorf("hello lacks %s", key)
				}
			}
			for _, key := range tt.hasNot {
				if doc.Lookup(key).Type != 0 {
					t.Errorf("hello has %s", key)
				}
			}
		})
	}
}

func TestNoLoadBalancer(t *testing.T) {
	for name, greet := range map[string]func(*peer){
		"without load balancing": func(p *peer) { p.hello() },
		"without hello": func(p *peer) {
			id, _, _ := p.read()
			p.reply(id, document(func(dst []byte) []byte {
				return bson.AppendString(bson.AppendInt32(bson.AppendDouble(dst, "ok", 0), "code", 59), "codeName", "CommandNotFound")
			}))
		},
	} {
		addr := fakeServer(t, func(p *peer) { greet(p); p.read() })
		_, err := Dial(t.Context(), addr, &Config{LoadBalanced: true})
		if err == nil || mongoerr.HasLabel(err, mongoerr.LabelSystemOverloaded) || !strings.Contains(err.Error(), "load balancing mode") {
			t.Errorf("a server %s: %v", name, err)
		}
	}
}

// What else goes wrong with the hello of a load balanced server is what the server says.
func TestLoadBalancedServerRefusesHello(t *testing.T) {
	addr := fakeServer(t, func(p *peer) {
		id, _, _ := p.read()
		p.reply(id, document(func(dst []byte) []byte {
			return bson.AppendString(bson.AppendInt32(bson.AppendDouble(dst, "ok", 0), "code", 91), "codeName", "ShutdownInProgress")
		}))
		p.read()
	})
	_, err := Dial(t.Context(), addr, &Config{LoadBalanced: true})
	if e, ok := errors.AsType[*mongoerr.ServerError](err); !ok || e.Code != 91 || strings.Contains(err.Error(), "load balancing mode") {
		t.Errorf("%v", err)
	}
}

// A legacy server that does not know hello is asked with legacy hello from then on.
func TestMonitoringHello(t *testing.T) {
	for _, helloOK := range []bool{true, false} {
		names := make(chan string, 2)
		addr := fakeServer(t, func(p *peer) {
			messages := 0
			for {
				id, m, ok := p.read()
				if !ok {
					return
				}
				for key := range m.Body.All() {
					names <- key
					break
				}
				if messages++; messages > 1 {
					for _, key := range []string{"client", "compression", "backpressure", "speculativeAuthenticate", "saslSupportedMechs"} {
						if m.Body.Lookup(key).Type != 0 {
							t.Errorf("a later hello has the handshake's %s", key)
						}
					}
				}
				p.reply(id, document(func(dst []byte) []byte {
					return bson.AppendDouble(bson.AppendBool(dst, "helloOk", helloOK), "ok", 1)
				}))
			}
		})
		c, err := DialMonitor(t.Context(), addr, &Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Handshake(t.Context()); err != nil {
			t.Fatal(err)
		}
		if name := <-names; name != "isMaster" {
			t.Errorf("first message is %s", name)
		}
		if _, err := c.RoundTrip(t.Context(), c.AppendHello(nil, AwaitHello{})); err != nil {
			t.Fatal(err)
		}
		want := map[bool]string{true: "hello", false: "isMaster"}[helloOK]
		if name := <-names; name != want {
			t.Errorf("helloOk %v: second message is %s, want %s", helloOK, name, want)
		}
	}
}
