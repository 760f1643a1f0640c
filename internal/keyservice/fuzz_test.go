package keyservice

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"allium/auth"
	"allium/encryption/kms"
)

// script is a connection on which the other side says the same whatever it is told.
type script struct {
	net.Conn
	io.Reader
	asked chan struct{} // closed at the first request
	once  sync.Once
}

// newScript returns a connection to a service that gives its answer once it is asked.
func newScript(answer []byte) *script {
	return &script{Reader: bytes.NewReader(answer), asked: make(chan struct{})}
}

func (s *script) Read(p []byte) (int, error) {
	<-s.asked
	return s.Reader.Read(p)
}

func (s *script) Write(p []byte) (int, error) {
	s.ask()
	return len(p), nil
}

func (s *script) Close() error {
	s.ask()
	return nil
}

func (s *script) ask() { s.once.Do(func() { close(s.asked) }) }

func (*script) SetDeadline(time.Time) error      { return nil }
func (*script) SetReadDeadline(time.Time) error  { return nil }
func (*script) SetWriteDeadline(time.Time) error { return nil }

// TestRecordedAnswers reads answers as services send them, in one piece and in chunks.
func TestRecordedAnswers(t *testing.T) {
	files, err := filepath.Glob("testdata/example-*.bin")
	if err != nil || len(files) != 3 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequest(http.MethodPost, "https://kms.example/", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		var out map[string]any
		r := &request{provider: "aws", endpoint: "kms.example:443", path: "/"}
		if status, err := r.exchange(newScript(data), req, &out); err != nil || status != http.StatusOK || len(out) == 0 {
			t.Errorf("%s: %v, status %d, %v", file, out, status, err)
		}
	}
}

// FuzzAnswer takes any bytes as the answer of a key service over HTTP: there is an error, or what
// the answer is to have, and the error does not show what the request must not tell.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 28\r\n\r\n{\"CiphertextBlob\": \"AAECAw==\"}",
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n12\r\n{\"value\": \"AAECAw\"}\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\n\r\n{\"ciphertext\": \"AAECAw==\", \"plaintext\": \"AAECAw==\", \"access_token\": \"t\", \"expires_in\": 3599}",
		"HTTP/1.1 400 Bad Request\r\n\r\nwhat is open-sesame?",
		"HTTP/1.1 307 Temporary Redirect\r\nLocation: https://elsewhere.example/\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n{}",
		"HTTP/1.0 200\r\n\r\n[]",
		"open-sesame what?\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encodin" + strings.Repeat("\xd3", 5000) + "g: chunked\r\n\r\n", // an error quoted it all
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		const secret = "open-sesame"
		r := &request{provider: "aws", endpoint: "kms.example:443", path: "/", secrets: []string{secret}}
		req, err := http.NewRequest(http.MethodPost, "https://kms.example/", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		var out struct {
			CiphertextBlob []byte
			Value          string      `json:"value"`
			AccessToken    auth.Secret `json:"access_token"`
		}
		status, err := r.exchange(newScript(answer), req, &out)
		if err == nil {
			if status != http.StatusOK {
				t.Errorf("status %d is no error", status)
			}
			return
		}
		text := (&kms.Error{Provider: "aws", Endpoint: "kms.example:443", Status: status, Err: err}).Error()
		if strings.Contains(text, secret) {
			t.Errorf("the error shows the secret: %q", text)
		}
		if len(text) > 5000 || strings.ContainsAny(text, "\x00\x1b\n\r") && status != 0 {
			t.Errorf("the error has %d bytes: %q", len(text), text)
		}
	})
}

// FuzzMetadata takes any bytes as the answer of a metadata service: there is an error, or a token.
func FuzzMetadata(f *testing.F) {
	for _, seed := range []string{
		`{"access_token": "t", "expires_in": "3599"}`, `{"access_token": "t", "expires_in": 3599}`, `{"expires_in": "x"}`, `{"access_token": 1}`, `[]`, `{`,
		`{"access_token": "t", "expires_in": "99999999999999999999"}`, `{"access_token": "t", "expires_in": "-1"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		c, err := New(Config{Providers: kms.Providers{"azure": kms.Azure{}, "gcp": kms.GCP{}}})
		if err != nil {
			t.Fatal(err)
		}
		c.meta = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(answer)), Request: r}, nil
		})}
		if token, err := c.azureMachineToken(t.Context()); (err == nil) != (token.value != "") || err == nil && time.Until(token.expires) > 200*365*24*time.Hour {
			t.Errorf("token %q until %v, %v", string(token.value), token.expires, err)
		}
		if token, err := c.gcpMachineToken(t.Context()); (err == nil) != (token.value != "") {
			t.Errorf("token %q, %v", string(token.value), err)
		}
	})
}
