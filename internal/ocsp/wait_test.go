package ocsp

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/ocsp"

	"allium/internal/ocsptest"
)

// slowBench is an authority whose responder, in memory, takes its time.
type slowBench struct {
	*ocsptest.Authority
	checker Checker
	cert    tls.Certificate
	takes   atomic.Int64 // nanoseconds; 0: it never answers
	asked   atomic.Int32
}

func newSlowBench(t *testing.T, takes time.Duration) *slowBench {
	a, err := ocsptest.New(false)
	if err != nil {
		t.Fatal(err)
	}
	b := &slowBench{Authority: a}
	b.takes.Store(int64(takes))
	if b.cert, err = a.Issue(false, "http://responder.example/"); err != nil {
		t.Fatal(err)
	}
	b.checker.Responders, b.checker.Dial = true, func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			request, err := http.ReadRequest(bufio.NewReader(server))
			if err != nil {
				return
			}
			b.asked.Add(1)
			w := httptest.NewRecorder()
			b.ServeHTTP(w, request)
			if b.takes.Load() == 0 {
				server.Read(make([]byte, 1))
				return
			}
			time.Sleep(time.Duration(b.takes.Load()))
			w.Result().Write(server)
		}()
		return client, nil
	}
	return b
}

func (b *slowBench) check(ctx context.Context, late func(error)) error {
	return b.checker.Check(ctx, &tls.ConnectionState{
		PeerCertificates: []*x509.Certificate{b.cert.Leaf}, VerifiedChains: [][]*x509.Certificate{{b.cert.Leaf, b.Cert}},
	}, late)
}

// A responder that says nothing costs the first connections half a second, however many there are,
// and the later ones nothing, though it is asked again and again. When it speaks it is heard.
func TestSilenceIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newSlowBench(t, 0)
		defer b.checker.Close()
		begun := time.Now()
		for range 20 {
			go func() {
				if err := b.check(t.Context(), nil); err != nil || time.Since(begun) != patience {
					t.Errorf("%v after %v", err, time.Since(begun))
				}
			}()
		}
		time.Sleep(Timeout + time.Second)
		for range 20 {
			begun := time.Now()
			if err := b.check(t.Context(), nil); err != nil || time.Since(begun) > 0 {
				t.Errorf("%v after %v", err, time.Since(begun))
			}
			time.Sleep(10 * time.Second)
		}
		if n := b.asked.Load(); n < 5 || n > 8 {
			t.Errorf("asked %d times in 200 s", n)
		}
		b.takes.Store(int64(time.Millisecond))
		b.Set(func() { b.Status = ocsp.Revoked })
		time.Sleep(time.Minute)
		b.check(t.Context(), nil)
		time.Sleep(time.Second)
		if err := b.check(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "revoked on ") {
			t.Errorf("after the responder has spoken: %v", err)
		}
	})
}

// Whoever has little time waits for half of it.
func TestWaitingLeavesTime(t *testing.T) {
	for _, left := range []time.Duration{time.Millisecond, 100 * time.Millisecond, 800 * time.Millisecond, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			b := newSlowBench(t, 0)
			defer b.checker.Close()
			ctx, cancel := context.WithTimeout(t.Context(), left)
			defer cancel()
			begun := time.Now()
			if err := b.check(ctx, nil); err != nil || time.Since(begun) != min(patience, left/2) {
				t.Errorf("%v left: %v after %v", left, err, time.Since(begun))
			}
		})
	}
}

// A responder's answer that comes too late to be waited for reaches those who have gone on.
func TestLateAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		takes  time.Duration
		want   int32 // how many of two connections are told
	}{
		"good": {ocsp.Good, 2 * time.Second, 0}, "revoked": {ocsp.Revoked, 2 * time.Second, 2}, "unknown": {ocsp.Unknown, 2 * time.Second, 0},
		"never": {ocsp.Revoked, 0, 0}, "after all time": {ocsp.Revoked, time.Minute, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newSlowBench(t, tt.takes)
				defer b.checker.Close()
				b.Status = tt.status
				var told atomic.Int32
				for range 2 {
					err := b.check(t.Context(), func(err error) {
						if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
							told.Add(1)
						}
					})
					if err != nil {
						t.Error(err)
					}
				}
				time.Sleep(2 * time.Minute)
				if told.Load() != tt.want || b.asked.Load() != 1 {
					t.Errorf("told %d, asked %d", told.Load(), b.asked.Load())
				}
			})
		})
	}
}

// Nobody's end is the end of the others', and Close leaves nothing behind.
func TestQuestionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newSlowBench(t, 200*time.Millisecond)
		b.Status = ocsp.Revoked
		first, giveUp := context.WithCancel(t.Context())
		go b.check(first, nil)
		synctest.Wait()
		giveUp()
		if err := b.check(t.Context(), nil); err == nil || b.asked.Load() != 1 {
			t.Errorf("%v, asked %d", err, b.asked.Load())
		}
		b.checker.Close()

		b = newSlowBench(t, 0)
		b.check(t.Context(), func(error) { t.Error("told after Close") })
		begun := time.Now()
		b.checker.Close()
		b.checker.Close()
		if err := b.check(t.Context(), nil); err != nil || b.asked.Load() != 1 || time.Since(begun) > time.Second {
			t.Errorf("after Close: %v, asked %d, %v", err, b.asked.Load(), time.Since(begun))
		}
	})
}

// A dialer of the program's that panics does not end it.
func TestDialerPanics(t *testing.T) {
	b := newSlowBench(t, 0)
	defer b.checker.Close()
	b.checker.Dial = func(context.Context, string, string) (net.Conn, error) { panic("odd") }
	if err := b.check(t.Context(), nil); err != nil {
		t.Error(err)
	}
}
