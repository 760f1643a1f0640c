package exchange

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service is a service in memory that says what it likes, and notes where it was asked.
type service struct {
	say   func(w io.Writer)
	asked []string
}

func (s *service) transport() *http.Transport {
	t := NewTransport(nil)
	t.DialContext = func(_ context.Context, _, address string) (net.Conn, error) {
		s.asked = append(s.asked, address)
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			request, err := http.ReadRequest(bufio.NewReader(server))
			if err != nil {
				return
			}
			io.Copy(io.Discard, request.Body)
			s.say(server)
			io.Copy(io.Discard, server) // until the other side hangs up
		}()
		return client, nil
	}
	return t
}

// always writes the same again and again, with a pause, until nobody reads any more.
func always(text string, pause time.Duration) func(io.Writer) {
	return func(w io.Writer) {
		for {
			if _, err := io.WriteString(w, text); err != nil {
				return
			}
			time.Sleep(pause)
		}
	}
}

func after(start string, then func(io.Writer)) func(io.Writer) {
	return func(w io.Writer) {
		if _, err := io.WriteString(w, start); err == nil && then != nil {
			then(w)
		}
	}
}

// Whatever a service says, the exchange ends by its context, reads no more than it should, asks
// nobody else, and says what was wrong in one line.
func TestOddAnswers(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for name, tt := range map[string]struct {
		say  func(io.Writer)
		want string // "": the answer is taken
	}{
		"an answer":                     {say: after(ok+"Content-Length: 2\r\n\r\n{}", nil)},
		"after informational answers":   {say: after("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n"+ok+"Content-Length: 2\r\n\r\n{}", nil)},
		"another protocol":              {say: after("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", nil), want: "101 Switching Protocols"},
		"another protocol, and bytes":   {say: after("HTTP/1.1 101 Switching Protocols\r\n\r\n", always("x", time.Millisecond)), want: "101 Switching Protocols"},
		"another protocol after a hint": {say: after("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 101 Switching Protocols\r\n\r\n", nil), want: "101 Switching Protocols"},
		"only informational answers":    {say: always("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", 0), want: "exceeded"},
		"slow informational answers":    {say: always("HTTP/1.1 102 Processing\r\n\r\n", time.Second), want: "deadline exceeded"},
		"nothing":                       {say: after("", nil), want: "deadline exceeded"},
		"half a status":                 {say: after("HTTP/1.1 2", nil), want: "deadline exceeded"},
		"headers without end":           {say: after(ok, always("X-A: b\r\n", 0)), want: "exceeded"},
		"slow headers without end":      {say: after(ok, always("X-A: b\r\n", time.Second)), want: "deadline exceeded"},
		"no body":                       {say: after(ok+"Content-Length: 2\r\n\r\n", nil), want: "deadline exceeded"},
		"a body without end":            {say: after(ok+"\r\n", always(strings.Repeat("x", 1<<16), 0)), want: ErrTooLong.Error()},
		"a slow body":                   {say: after(ok+"\r\n", always("x", time.Second)), want: "deadline exceeded"},
		"chunks without end":            {say: after(ok+"Transfer-Encoding: chunked\r\n\r\n", always("1\r\nx\r\n", time.Second)), want: "deadline exceeded"},
		"a trailer without end":         {say: after(ok+"Transfer-Encoding: chunked\r\n\r\n0\r\n", always("X-A: b\r\n", 0)), want: "trailer"},
		"control codes":                 {say: after("\x1b[2J\u202e"+strings.Repeat("open", 4000)+"\r\n\r\n", nil), want: "malformed HTTP"},
		"a secret":                      {say: after("open-sesame\r\n\r\n", nil), want: "<secret>"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &service{say: tt.say}
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://service.example/", strings.NewReader("question"))
				if err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				a, err := Do(s.transport(), request, "open-sesame")
				defer time.Sleep(time.Minute) // for the service to end
				if took := time.Since(begun); took > 30*time.Second {
					t.Errorf("it took %v", took)
				}
				if tt.want == "" {
					if err != nil || a.Status != http.StatusOK || string(a.Body) != "{}" {
						t.Errorf("%d %q, %v", a.Status, a.Body, err)
					}
					return
				}
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Fatalf("%v, want %q", err, tt.want)
				}
				shown(t, err.Error())
				if len(a.Body) > MaxBody+1 {
					t.Errorf("%d bytes were read", len(a.Body))
				}
			})
		})
	}
}

// No redirection is followed: the headers are for the service alone.
func TestRedirections(t *testing.T) {
	for _, status := range []int{300, 301, 302, 303, 304, 305, 307, 308} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{say: after(fmt.Sprintf("HTTP/1.1 %d Elsewhere\r\nLocation: http://elsewhere.example/\r\nContent-Length: 0\r\n\r\n", status), nil)}
			for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPost} {
				request, err := http.NewRequestWithContext(t.Context(), method, "http://service.example/", nil)
				if err != nil {
					t.Fatal(err)
				}
				request.Header.Set("Metadata", "true")
				s.asked = nil
				a, err := Do(s.transport(), request)
				if err != nil || a.Status != status || len(s.asked) != 1 {
					t.Errorf("%s: %d, %v, asked %v", method, a.Status, err, s.asked)
				}
				if text := a.Refusal("service.example").Error(); text != fmt.Sprintf("service.example answered %d Elsewhere", status) {
					t.Error(text)
				}
			}
		})
	}
}

// A transport that is hard of hearing gets its time, and its error keeps its chain.
func TestCleanErrors(t *testing.T) {
	cause := errors.New("a\x1b]0;title\x07\nb\u202ec\r open-sesame " + strings.Repeat("é", 2000))
	err := Clean(fmt.Errorf("x: %w", cause), "open-sesame")
	shown(t, err.Error())
	if !errors.Is(err, cause) || Clean(io.EOF) != io.EOF || Clean(nil) != nil {
		t.Errorf("%v", err)
	}
}

// shown fails the test if a text is not fit to be shown.
func shown(t testing.TB, text string) {
	t.Helper()
	if len(text) > 3*maxShown+100 || !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) || strings.Contains(text, "open-sesame") {
		t.Errorf("%d bytes: %q", len(text), text)
	}
}

// FuzzText takes any bytes as what a service says: what is shown of it is one printable line of
// bounded length, and stays as it is when it is shown again.
func FuzzText(f *testing.F) {
	for _, seed := range []string{"", "no such key", "a\r\nb", "\x1b[31m", "\u202eabc", "\xff\xfe", strings.Repeat("é", maxShown), strings.Repeat("a", maxShown-1) + "€", "open-sesame"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		text := Text(said, "open-sesame")
		shown(t, text)
		if again := Text([]byte(text)); again != text && len(text) <= maxShown {
			t.Errorf("%q, shown again %q", text, again)
		}
	})
}

// FuzzDo takes any bytes as an answer over HTTP: there is an answer within bounds, or an error that
// is fit to be shown.
func FuzzDo(f *testing.F) {
	for _, seed := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "HTTP/1.1 101 Switching Protocols\r\n\r\nx", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 307 X\r\nLocation: /\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: y\r\n\r\n", "HTTP/1.1 500 \x1b[2J\r\n\r\nopen-sesame\x00", "open-sesame\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		transport := NewTransport(nil)
		transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			go func() {
				defer server.Close()
				if request, err := http.ReadRequest(bufio.NewReader(server)); err == nil {
					io.Copy(io.Discard, request.Body)
					server.Write(said)
				}
			}()
			return client, nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://service.example/", nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := Do(transport, request, "open-sesame")
		if ctx.Err() != nil {
			t.Fatalf("not answered in time: %v", err)
		}
		if err != nil {
			shown(t, err.Error())
			return
		}
		if a.Status == http.StatusSwitchingProtocols || a.Status < 200 && a.Status >= 100 || len(a.Body) > MaxBody {
			t.Errorf("status %d, %d bytes", a.Status, len(a.Body))
		}
		shown(t, a.Refusal("service.example", "open-sesame").Error())
	})
}
