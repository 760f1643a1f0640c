package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"allium/mongotest"
)

// runtimeAPI is a stand-in for the service that hands invocations to a function.
type runtimeAPI struct {
	server *httptest.Server
	next   chan string // the ids of invocations
	reply  chan string // the paths and bodies of what the function has answered
}

func newRuntimeAPI(t *testing.T) *runtimeAPI {
	t.Helper()
	api := &runtimeAPI{next: make(chan string), reply: make(chan string, 10)}
	api.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, ok := strings.CutPrefix(r.URL.Path, "/2018-06-01/runtime/")
		switch {
		case !ok:
			http.NotFound(w, r)
		case r.Method == http.MethodGet && path == "invocation/next":
			select {
			case id := <-api.next:
				w.Header().Set("Lambda-Runtime-Aws-Request-Id", id)
				io.WriteString(w, "{}")
			case <-r.Context().Done():
			}
		case r.Method == http.MethodPost:
			body, _ := io.ReadAll(r.Body)
			w.WriteHeader(http.StatusAccepted)
			api.reply <- path + " " + string(body)
		}
	}))
	t.Cleanup(api.server.Close)
	return api
}

func (api *runtimeAPI) addr() string { return strings.TrimPrefix(api.server.URL, "http://") }

// function is the program in a process of its own, on what looks like Lambda.
type function struct {
	api  *runtimeAPI
	cmd  *exec.Cmd
	done chan struct{}
}

func start(t *testing.T, uri string) *function {
	t.Helper()
	if testing.Short() {
		t.Skip("builds a program")
	}
	program := filepath.Join(t.TempDir(), "bootstrap")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f := &function{api: newRuntimeAPI(t), cmd: exec.Command(program), done: make(chan struct{})}
	f.cmd.Env = append(os.Environ(), "AWS_LAMBDA_RUNTIME_API="+f.api.addr(), "AWS_EXECUTION_ENV=AWS_Lambda_provided.al2023", "MONGODB_URI="+uri)
	f.cmd.Stderr = os.Stderr
	if err := f.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { f.cmd.Wait(); close(f.done) }()
	t.Cleanup(func() { f.cmd.Process.Kill(); <-f.done })
	return f
}

// invoke invokes the function and returns its report.
func (f *function) invoke(t *testing.T, id string) (r report) {
	t.Helper()
	f.api.next <- id
	select {
	case reply := <-f.api.reply:
		path, body, _ := strings.Cut(reply, " ")
		var outer response
		if path != "invocation/"+id+"/response" {
			t.Fatalf("answer %s", reply)
		}
		if err := json.Unmarshal([]byte(body), &outer); err != nil || outer.StatusCode != 200 || outer.Headers["Content-Type"] != "application/json" {
			t.Fatalf("answer %s, %v", reply, err)
		}
		if err := json.Unmarshal([]byte(outer.Body), &r); err != nil {
			t.Fatalf("answer %s, %v", reply, err)
		}
	case <-f.done:
		t.Fatal("the function has ended")
	}
	return r
}

// TestErrors: what goes wrong is told to the runtime API.
func TestErrors(t *testing.T) {
	for uri, want := range map[string]string{
		"": "MONGODB_URI is not set", "mongodb://": "init/error",
		"mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=1": "",
	} {
		api := newRuntimeAPI(t)
		ended := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { ended <- run(ctx, api.addr(), uri) }()
		if want == "" { // it starts, and the invocation fails
			api.next <- "7"
			if reply := <-api.reply; !strings.HasPrefix(reply, "invocation/7/error ") || !strings.Contains(reply, `"errorType":"*mongoerr.`) {
				t.Errorf("%s: answer %s", uri, reply)
			}
			cancel()
			<-ended
			continue
		}
		if reply := <-api.reply; !strings.Contains(reply, want) {
			t.Errorf("%s: answer %s", uri, reply)
		}
		if err := <-ended; err == nil {
			t.Errorf("%s: no error", uri)
		}
	}
	if err := run(t.Context(), "", "mongodb://h"); err == nil {
		t.Error("no error outside of Lambda")
	}
}

// TestReport invokes the function on each kind of deployment.
func TestReport(t *testing.T) {
	for name, option := range map[string]mongotest.Option{"replica set": mongotest.ReplicaSet(3), "standalone": mongotest.Standalone(), "sharded": mongotest.Sharded(1, 2)} {
		t.Run(name, func(t *testing.T) {
			d := mongotest.Start(t, option)
			f := start(t, d.URI())
			first := f.invoke(t, "1")
			second := f.invoke(t, "2")
			if first.Heartbeats == 0 || first.HeartbeatDuration <= 0 || first.AverageHeartbeatDuration <= 0 || first.AwaitedHeartbeats != 0 {
				t.Errorf("heartbeats: %+v", first)
			}
			if first.Commands != 2 || second.Commands != 4 || second.FailedCommands != 0 || first.CommandDuration <= 0 || first.AverageCommandDuration <= 0 {
				t.Errorf("commands: %+v, then %+v", first, second)
			}
			if first.OpenConnections < 1 || second.OpenConnections < 1 {
				t.Errorf("connections: %+v, then %+v", first, second)
			}
		})
	}
}

// heartbeat is how often the function's client checks the servers in these tests.
const heartbeat = 500 * time.Millisecond
