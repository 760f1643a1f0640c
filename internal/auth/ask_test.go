package auth

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// answering returns a client of services in memory that all give one answer, and the addresses that
// were dialed.
func answering(answer string) (*http.Client, *[]string) {
	var dialed []string
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(_ context.Context, _, address string) (net.Conn, error) {
		dialed = append(dialed, address)
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			if _, err := http.ReadRequest(bufio.NewReader(server)); err == nil {
				io.WriteString(server, answer)
				io.Copy(io.Discard, server)
			}
		}()
		return client, nil
	}}}, &dialed
}

// A service that hands out tokens or keys cannot hold its asker, send its headers elsewhere, or
// write more than a line into an error.
func TestAskOddServices(t *testing.T) {
	for name, tt := range map[string]struct{ answer, want string }{
		"another protocol": {"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", "101 Switching Protocols"},
		"a redirection":    {"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://elsewhere.example/\r\nContent-Length: 0\r\n\r\n", "service.example answered 307"},
		"a long refusal": {"HTTP/1.1 403 Forbidden\r\nContent-Length: 500000\r\n\r\nno\x1b[2J\r\n" + strings.Repeat("x", 499992),
			"service.example answered 403 Forbidden: no"},
		"its secret": {"HTTP/1.1 403 Forbidden\r\nContent-Length: 27\r\n\r\nwho says open-sesame to me?", "who says <secret>"},
		"silence":    {"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", "deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, dialed := answering(tt.answer)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				_, err := Ask(ctx, client, http.MethodGet, "http://service.example/", nil, http.Header{"Metadata": {"true"}}, "open-sesame")
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Fatalf("%v, want %q", err, tt.want)
				}
				if text := err.Error(); len(text) > 1200 || strings.ContainsAny(text, "\x1b\r\n") || strings.Contains(text, "open-sesame") {
					t.Errorf("%d bytes: %.200q", len(text), text)
				}
				if len(*dialed) != 1 {
					t.Errorf("dialed %v", *dialed)
				}
			})
		})
	}
}
