package main

import (
	"crypto/tls"
	"net"
	"regexp"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// numbers are what differs from run to run in errors of connections.
var numbers = regexp.MustCompile(`:\d\d+|\[-\d+\]| on [0-9.:]+`)

// unreachableScenes are those about hosts with which no connection can be made: the error of an
// operation, and that of a monitor's check.
func unreachableScenes() []scene {
	var out []scene
	for name, host := range map[string]func() (string, func()){
		"refused":   func() (string, func()) { return "127.0.0.1:1", func() {} },
		"no socket": func() (string, func()) { return "/nowhere/none.sock", func() {} },
		"closed":    closing,
	} {
		for _, withTLS := range []bool{false, true} {
			if name == "closed" && withTLS {
				continue // whether the end or a reset is read, is chance
			}
			title := "unreachable, " + name
			if withTLS {
				title += ", TLS"
			}
			out = append(out, scene{still: true, name: title, run: func(*mongo.Collection) []any {
				addr, end := host()
				defer end()
				var (
					mu    sync.Mutex
					first error
				)
				failed := func(e *event.ServerHeartbeatFailedEvent) {
					mu.Lock()
					defer mu.Unlock()
					if first == nil {
						first = e.Failure
					}
				}
				o := options.Client().SetHosts([]string{addr}).SetServerSelectionTimeout(400 * time.Millisecond).
					SetServerMonitor(&event.ServerMonitor{ServerHeartbeatFailed: failed})
				if withTLS {
					o.SetTLSConfig(&tls.Config{MinVersion: tls.VersionTLS12})
				}
				c, err := newClient(o)
				must(err)
				defer c.Disconnect(ctx)
				err = c.Ping(ctx, nil)
				mu.Lock()
				defer mu.Unlock()
				return []any{numbers.ReplaceAllString(err.Error(), "N"), numbers.ReplaceAllString(first.Error(), "N"),
					mongo.IsTimeout(err), mongo.IsNetworkError(err), mongo.IsNetworkError(first)}
			}})
		}
	}
	return out
}

// closing is a host that reads, and closes the connection.
func closing() (addr string, end func()) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = c.Read(make([]byte, 4096))
				c.Close()
			}()
		}
	}()
	return l.Addr().String(), func() { l.Close() }
}
