package keyservice

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// saying returns a connection in memory to a service that gives one answer to whatever it is asked.
func saying(answer string) net.Conn {
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		if _, err := http.ReadRequest(bufio.NewReader(server)); err == nil {
			io.WriteString(server, answer)
			io.Copy(io.Discard, server)
		}
	}()
	return client
}

// An exchange with a key service ends with its context, whatever the service does with the
// connection.
func TestExchangeEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		answer, want string
		status       int
	}{
		"another protocol":     {"HTTP/1.1 101 Switching Protocols\r\n\r\n", "101 Switching Protocols", 101},
		"only hints":           {strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 3), "deadline exceeded", 0},
		"silence":              {"", "deadline exceeded", 0},
		"half a body":          {"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{", "KMS response unfinished: context deadline exceeded", 0},
		"half a refusal":       {"HTTP/1.1 400 Bad Request\r\nContent-Length: 7\r\n\r\n{", "KMS response unfinished: context deadline exceeded", 0},
		"control codes":        {"HTTP/1.1 400 Bad Request\r\nContent-Length: 8\r\n\r\nno\x1b[2J\r\n", "Response body=no\ufffd[2J", 400},
		"too long":             {"HTTP/1.1 200 OK\r\n\r\n" + strings.Repeat(" ", 1<<20+1), "more than 1048576 bytes", 200},
		"what is not asked":    {"HTTP/1.1 204 No Content\r\n\r\n", "HTTP status=204", 204},
		"a number for a field": {"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{\"value\": 1}", "parse error in JSON", 200},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://kms.example/", strings.NewReader("{}"))
				if err != nil {
					t.Fatal(err)
				}
				r := &request{provider: "aws", endpoint: "kms.example:443", path: "/"}
				conn := saying(tt.answer)
				var out struct {
					Value string `json:"value"`
				}
				status, err := r.exchange(conn, req, &out)
				conn.Close()
				if err == nil || !strings.Contains(err.Error(), tt.want) || status != tt.status {
					t.Errorf("status %d, %v, want %d, %q", status, err, tt.status, tt.want)
				}
				if errors.Is(err, context.DeadlineExceeded) != strings.Contains(tt.want, "deadline") {
					t.Errorf("%v is of another class", err)
				}
			})
		})
	}
}
