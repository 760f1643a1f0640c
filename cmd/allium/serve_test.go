package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/fakeserver"
)

// asMain makes the test binary be the tool.
const asMain = "ALLIUM_TEST_AS_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// output is written by one goroutine and read by another.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// startServe runs allium serve until the test ends and returns the connection string that it
// prints.
func startServe(t *testing.T, args string) (uri string, stderr *output) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, w := io.Pipe()
	stderr = &output{}
	done := make(chan int, 1)
	go func() {
		status := run(ctx, append([]string{"serve"}, strings.Fields(args)...), w, stderr)
		w.Close()
		done <- status
	}()
	t.Cleanup(func() {
		cancel()
		if status := <-done; status != 0 {
			t.Errorf("exit status %d: %s", status, stderr)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("nothing is printed but %q: %v", stderr, err)
	}
	return strings.TrimSuffix(line, "\n"), stderr
}

func TestServe(t *testing.T) {
	for _, c := range []struct {
		args    string
		hosts   int
		version string
		is      string // what a server says of itself in hello
	}{
		{"--port 0", 1, "8.0.", "isWritablePrimary"},
		{"--standalone --port 0 --version 4.2", 1, "4.2.", "ismaster"},
		{"--replset 3 --port 0 --version 7.0.2", 3, "7.0.2", "setName"},
		{"--sharded 2x2 --port 0 --version 5.0", 2, "5.0.", "msg"},
		{"--sharded 2x1 --shard-members 3 --port 0", 1, "8.0.", "msg"},
		{"--load-balanced 2 --port 0", 1, "8.0.", "serviceId"},
		{"--replset 1 --auth us/er:se:cr@t --tls --port 0", 1, "8.0.", "setName"},
		{"--sharded 1x1 --auth root:secret --port 0", 1, "8.0.", "msg"},
	} {
		t.Run(c.args, func(t *testing.T) {
			uri, _ := startServe(t, c.args)
			if n := strings.Count(uri, ",") + 1; n != c.hosts {
				t.Errorf("%d hosts in %s", n, uri)
			}
			client, err := allium.Open(uri)
			if err != nil {
				t.Fatalf("%s: %v", uri, err)
			}
			defer client.Close(context.Background())
			db := client.Database("app")
			if _, err := db.Collection("c").InsertOne(t.Context(), bson.D{{Key: "x", Value: 1}}); err != nil {
				t.Fatalf("%s: %v", uri, err)
			}
			info, err := db.RunCommand(t.Context(), bson.D{{Key: "buildInfo", Value: 1}})
			if v, _ := info.Lookup("version").StringValue(); err != nil || !strings.HasPrefix(v, c.version) {
				t.Errorf("version %q, %v", v, err)
			}
			if c.is == "serviceId" {
				if !strings.Contains(uri, "loadBalanced=true") {
					t.Errorf("%s does not declare the load balancer", uri)
				}
				return // the handshake has it; a client that got this far has seen it
			}
			name := "hello"
			if c.version == "4.2." {
				name = "isMaster"
			}
			hello, err := db.RunCommand(t.Context(), bson.D{{Key: name, Value: 1}})
			if err != nil || hello.Lookup(c.is).IsZero() {
				t.Errorf("%s lacks %s, %v", hello, c.is, err)
			}
		})
	}
}

// TestServeTLS prints where the certificates are, and removes them in the end.
func TestServeTLS(t *testing.T) {
	var ca string
	t.Run("", func(t *testing.T) {
		_, stderr := startServe(t, "--tls --port 0")
		_, rest, ok := strings.Cut(stderr.String(), "certificate authority: ")
		ca, _, _ = strings.Cut(rest, "\n")
		if text, err := os.ReadFile(ca); !ok || err != nil || !bytes.Contains(text, []byte("BEGIN CERTIFICATE")) {
			t.Errorf("the certificate authority is not in %q, %v; printed was %q", ca, err, stderr)
		}
	})
	if _, err := os.Stat(ca); !os.IsNotExist(err) {
		t.Errorf("%s is left behind, %v", ca, err)
	}
}

// TestServeSearches searches what it has written, on a deployment that was given no flag for it.
func TestServeSearches(t *testing.T) {
	uri, _ := startServe(t, "--port 0")
	client, err := allium.Open(uri)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(context.Background())
	c := client.Database("app").Collection("c")
	if _, err := c.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}, {Key: "x", Value: "Boats and trains"}}); err != nil {
		t.Fatal(err)
	}
	mappings := bson.D{{Key: "mappings", Value: bson.D{{Key: "dynamic", Value: true}}}}
	if _, err := c.CreateSearchIndex(t.Context(), allium.SearchIndexModel{Definition: mappings}); err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string]int{"trains": 1, "planes": 0} {
		cur, err := c.Aggregate(t.Context(), bson.A{bson.D{{Key: "$search", Value: bson.D{{Key: "text", Value: bson.D{{Key: "query", Value: word}, {Key: "path", Value: "x"}}}}}}})
		if err != nil {
			t.Fatal(err)
		}
		if found, err := cur.All(t.Context()); err != nil || len(found) != want {
			t.Errorf("%s: %v, %v", word, found, err)
		}
	}
}

// TestServeLog logs commands with -v, and no passwords.
func TestServeLog(t *testing.T) {
	uri, stderr := startServe(t, "-v --auth root:hunter2 --port 0")
	client, err := allium.Open(uri)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(context.Background())
	if _, err := client.Database("app").Collection("c").InsertOne(t.Context(), bson.D{{Key: "x", Value: 1}}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Database("app").RunCommand(t.Context(), bson.D{{Key: "nosuch", Value: 1}}); err == nil {
		t.Fatal("an unknown command runs")
	}
	for _, want := range []string{"command=insert", "command=nosuch", `error="no such command: 'nosuch'"`, "command=saslContinue"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("no %s in\n%s", want, stderr)
		}
	}
	if strings.Contains(stderr.String(), "hunter2") || strings.Contains(stderr.String(), "payload") {
		t.Errorf("credentials are logged:\n%s", stderr)
	}
}

// TestServePorts has consecutive ports, the first of which is what clients connect to, and an error
// that names a busy one.
func TestServePorts(t *testing.T) {
	for _, c := range []struct {
		args         string
		nodes, hosts int
	}{{"--standalone", 1, 1}, {"--replset 3", 3, 3}, {"--sharded 1x2", 2, 2}, {"--load-balanced 1", 3, 1}, {"--sharded 2x1 --shard-members 2", 5, 1}} {
		t.Run(c.args, func(t *testing.T) {
			port := fakeserver.FreePorts(t, c.nodes)
			uri, _ := startServe(t, fmt.Sprint(c.args, " --port ", port))
			var hosts []string
			for i := range c.hosts {
				hosts = append(hosts, fmt.Sprint("127.0.0.1:", port+i))
			}
			if want := "mongodb://" + strings.Join(hosts, ",") + "/"; !strings.HasPrefix(uri, want) {
				t.Errorf("printed %s, want %s", uri, want)
			}
			var stderr bytes.Buffer
			busy := port + c.nodes - 1
			if status := run(t.Context(), []string{"serve", "--port", fmt.Sprint(busy)}, io.Discard, &stderr); status != 1 ||
				!strings.Contains(stderr.String(), fmt.Sprint("127.0.0.1:", busy)) || !strings.Contains(stderr.String(), "address already in use: --port chooses") {
				t.Errorf("status %d, %s", status, &stderr)
			}
		})
	}
}

// TestServeSignals ends the process itself.
func TestServeSignals(t *testing.T) {
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0], "serve", "--replset", "3", "--tls", "--port", "0")
			cmd.Env = append(os.Environ(), asMain+"=1")
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			uri, err := bufio.NewReader(out).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			client, err := allium.Open(strings.TrimSuffix(uri, "\n"))
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close(context.Background())
			if err := client.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("the process ends with %v\n%s", err, &stderr)
			}
			_, rest, _ := strings.Cut(stderr.String(), "certificate authority: ")
			ca, _, _ := strings.Cut(rest, "\n")
			if _, err := os.Stat(ca); ca == "" || !os.IsNotExist(err) {
				t.Errorf("the certificates in %q are left behind, %v", ca, err)
			}
		})
	}
}

func TestServeJSON(t *testing.T) {
	for args, single := range map[string]bool{"--replset 2 --tls": false, "--load-balanced 2": true, "--sharded 1x2": true, "--standalone --auth a:b": false} {
		line, _ := startServe(t, args+" --json --port 0")
		var got ready
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if got.PID != os.Getpid() || len(got.Hosts) == 0 || !strings.Contains(got.URI, got.Hosts[0]) || (got.SingleMongosURI != "") != single {
			t.Errorf("%s: %s", args, line)
		}
		for _, uri := range []string{got.SingleMongosURI, got.MultiMongosURI} {
			if !single {
				if uri != "" {
					t.Errorf("%s: a mongos at %s", args, uri)
				}
				continue
			}
			client, err := allium.Open(uri)
			if err == nil {
				err = client.Ping(t.Context())
				client.Close(context.Background())
			}
			if err != nil || got.SingleMongosURI == got.MultiMongosURI {
				t.Errorf("%s: %s: %v", args, uri, err)
			}
		}
		if _, err := os.Stat(got.CAFile); strings.Contains(args, "tls") && err != nil {
			t.Error(err)
		}
		client, err := allium.Open(got.URI)
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Ping(t.Context()); err != nil {
			t.Errorf("%s: %v", args, err)
		}
		client.Close(context.Background())
	}
}

// TestServeParent kills the process that has started the server.
func TestServeParent(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	cmd := exec.Command("sh", "-c", `"$0" serve --parent --port 0 & wait`, os.Args[0])
	cmd.Env = append(os.Environ(), asMain+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	uri, err := r.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 { // the server has the pipe until it ends
		t.Errorf("%q, %v", rest, err)
	}
	cmd.Wait()
	if c, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(uri), "mongodb://"), "/")); err == nil {
		c.Close()
		t.Error("the server is still there")
	}
}

// TestServeShutdown ends servers by the command shutdown, which keeps what is in it as a signal
// does.
func TestServeShutdown(t *testing.T) {
	for _, more := range [][]string{nil, {"--replset", "1"}, {"--sharded", "2x1"}} {
		t.Run(strings.Join(more, " "), func(t *testing.T) { serveUntilShutdown(t, more) })
	}
}

func serveUntilShutdown(t *testing.T, more []string) {
	dir := t.TempDir()
	for i := range 2 {
		out, w := io.Pipe()
		status := make(chan int, 1)
		var stderr output
		go func() {
			status <- run(context.Background(), append([]string{"serve", "--port", "0", "--data", dir}, more...), w, &stderr)
		}()
		uri, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		client, err := allium.Open(strings.TrimSpace(uri))
		if err != nil {
			t.Fatal(err)
		}
		coll := client.Database("d").Collection("c")
		if n, err := coll.CountDocuments(t.Context(), bson.D{}); err != nil || n != int64(i) {
			t.Errorf("start %d: %d documents, %v", i, n, err)
		}
		if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "a", Value: 1}}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "shutdown", Value: 1}}); err == nil {
			t.Error("it answers")
		}
		client.Close(context.Background())
		if s := <-status; s != 0 {
			t.Fatalf("exit status %d: %s", s, &stderr)
		}
	}
}

// TestServeDrain ends a server while a command runs that would take an hour, and one that ends.
func TestServeDrain(t *testing.T) {
	for _, c := range []struct {
		drain, program string
		done           bool
	}{{"30s", "sleep(300) || true", true}, {"10ms", "sleep(3600000)", false}, {"0s", "while (true) {}", false}} {
		ctx, cancel := context.WithCancel(context.Background())
		out, w := io.Pipe()
		status := make(chan int, 1)
		var stderr output
		go func() {
			status <- run(ctx, []string{"serve", "--port", "0", "--drain", c.drain}, w, &stderr)
		}()
		uri, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		client, err := allium.Open(strings.TrimSpace(uri)+"?retryReads=false", allium.ClientOptions{})
		if err != nil {
			t.Fatal(err)
		}
		coll := client.Database("d").Collection("c")
		if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "a", Value: 1}}); err != nil {
			t.Fatal(err)
		}
		found := make(chan error, 1)
		go func() {
			_, err := coll.FindOne(context.Background(), bson.D{{Key: "$where", Value: c.program}})
			found <- err
		}()
		for running := false; !running; {
			reply, err := client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "currentOp", Value: 1}, {Key: "command.find", Value: "c"}})
			if err != nil {
				t.Fatal(err)
			}
			running = reply.Lookup("inprog", "0").Type != 0
		}
		cancel()
		if err := <-found; (err == nil) != c.done {
			t.Errorf("%s within %s: %v", c.program, c.drain, err)
		}
		if s := <-status; s != 0 || strings.Contains(stderr.String(), "interrupted") == c.done {
			t.Errorf("%s within %s: status %d, %s", c.program, c.drain, s, &stderr)
		}
		client.Close(context.Background())
	}
}

func TestServeHelp(t *testing.T) {
	var stderr bytes.Buffer
	if status := run(t.Context(), []string{"serve", "--help"}, &stderr, io.Discard); status != 0 {
		t.Errorf("exit status %d", status)
	}
	for _, want := range []string{"-standalone", "-replset", "-sharded", "-shard-members", "-load-balanced", "-version", "-auth", "-tls", "-port", "-v", "9.0"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("no %s in\n%s", want, &stderr)
		}
	}
}

func TestServeRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"":                                      "usage",
		"nosuch":                                "usage",
		"serve extra":                           `unexpected argument "extra"`,
		"serve --standalone --replset 1":        "choose one of",
		"serve --sharded 1x1 --replset 1":       "choose one of",
		"serve --replset 0":                     "--replset 0: want 1 to 50",
		"serve --replset 51":                    "--replset 51: want 1 to 50",
		"serve --replset 3 --replset :":         "--replset",
		"serve --load-balanced -1":              "--load-balanced -1",
		"serve --shard-members 3":               "--shard-members: only",
		"serve --sharded 1x1 --shard-members 0": "--shard-members 0: want 1 to 50",
		"serve --sharded two":                   "--sharded",
		"serve --sharded 0x2":                   "--sharded",
		"serve --sharded 2x":                    "--sharded",
		"serve --auth root":                     "--auth",
		"serve --auth :secret":                  "--auth",
		"serve --auth root:":                    "--auth",
		"serve --version 3.6 --port 0":          `"3.6" is not one of`,
		"serve --version new --port 0":          `"new"`,
		"serve --port 70000":                    "--port 70000",
		"serve --port -1":                       "--port -1",
		"serve --port 65535 --replset 2":        "--port 65535: the nodes take this port and those that follow",
		"serve --nosuch":                        "-nosuch",
	} {
		var stdout, stderr bytes.Buffer
		if status := run(t.Context(), strings.Fields(args), &stdout, &stderr); status == 0 {
			t.Errorf("allium %s exits with 0", args)
		} else if !strings.Contains(stderr.String(), want) {
			t.Errorf("allium %s says %q, without %q", args, &stderr, want)
		}
		if stdout.Len() > 0 {
			t.Errorf("allium %s prints %s", args, &stdout)
		}
	}
}
