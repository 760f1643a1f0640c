package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/fakeserver"
	"allium/mongotest"
)

// service runs allium serve with an environment until the test ends, and returns its line and what
// it says.
func service(t *testing.T, env map[string]string, args ...string) (ready, *output) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, w := io.Pipe()
	stderr := &output{}
	status := make(chan int, 1)
	go func() {
		status <- serveWith(ctx, env, append([]string{"--port", "0", "--json"}, args...), w, stderr)
		w.Close()
	}()
	t.Cleanup(func() {
		cancel()
		if s := <-status; s != 0 {
			t.Errorf("exit status %d: %s", s, stderr)
		}
	})
	var line ready
	if err := json.NewDecoder(out).Decode(&line); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	return line, stderr
}

func serveWith(ctx context.Context, env map[string]string, args []string, stdout, stderr io.Writer) int {
	f, status, done := parseServe(args, stdout, stderr)
	if done {
		return status
	}
	f.getenv = func(name string) string { return env[name] }
	return f.serve(ctx, stdout, stderr)
}

// writeFile writes a file of the test's folder and returns its path.
func writeFile(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// countDocs counts the documents of a collection of the database app.
func countDocs(t *testing.T, uri, coll string) int64 {
	t.Helper()
	return docsOf(t, uri, "app", coll)
}

// docsOf counts the documents of a collection.
func docsOf(t *testing.T, uri, db, coll string) int64 {
	t.Helper()
	client, err := allium.Open(uri)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(context.Background())
	n, err := client.Database(db).Collection(coll).CountDocuments(t.Context(), bson.D{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestServiceOfAContainer starts as the official images do: a root user of the environment, whose
// password is in a file, scripts, documents, and a folder of fixtures.
func TestServiceOfAContainer(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "init/01-users.js", `db.createUser({user: "web", pwd: "apple", roles: ["readWrite"]}); print(db.getName())`)
	writeFile(t, dir, "init/items.json", `[{"n": 1}, {"n": 2}]`)
	writeFile(t, dir, "seed/app/users.csv", "name\nAda\nGrace\nJean\n")
	env := map[string]string{"MONGO_INITDB_ROOT_USERNAME": "root", "MONGO_INITDB_ROOT_PASSWORD_FILE": writeFile(t, dir, "password", "s3cret\n"), "MONGO_INITDB_DATABASE": "app"}
	data := filepath.Join(dir, "data")
	args := []string{"--replset", "rs7:2", "--init-scripts", filepath.Join(dir, "init"), "--seed", filepath.Join(dir, "seed"), "--data", data, "--set-parameter", "ttlMonitorSleepSecs=7", "--set-parameter", "notablescan=false"}
	check := func(t *testing.T) {
		line, stderr := service(t, env, args...)
		if !strings.Contains(line.URI, "root:s3cret@") || !strings.Contains(line.URI, "replicaSet=rs7") || len(line.Hosts) != 2 {
			t.Errorf("%+v", line)
		}
		web := "mongodb://web:apple@" + strings.Join(line.Hosts, ",") + "/app?replicaSet=rs7"
		if items, users := countDocs(t, web, "items"), countDocs(t, web, "users"); items != 2 || users != 3 {
			t.Errorf("%d items, %d users\n%s", items, users, stderr)
		}
		client, err := allium.Open(line.URI)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close(context.Background())
		reply, err := client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "getParameter", Value: 1}, {Key: "ttlMonitorSleepSecs", Value: 1}})
		if n, _ := reply.Lookup("ttlMonitorSleepSecs").AsInt64(); err != nil || n != 7 {
			t.Errorf("%v, %v", reply, err)
		}
	}
	t.Run("first", check)
	t.Run("again, with what was kept", check) // the scripts do not run: the user would be there twice
}

// TestServiceListens reaches every address of --bind.
func TestServiceListens(t *testing.T) {
	dir, err := os.MkdirTemp("", "s") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "m.sock")
	args := []string{"--bind", "127.0.0.1"}
	sockets := runtime.GOOS != "windows" // where paths begin with a slash
	if sockets {
		args = append(args, "--bind", socket+","+dir)
	}
	version6 := false
	if l, err := net.Listen("tcp6", "[::1]:0"); err == nil {
		l.Close()
		args = append(args, "--bind", "[::1]")
		version6 = true
	}
	line, _ := service(t, nil, args...)
	_, port, _ := net.SplitHostPort(line.Hosts[0])
	hosts := []string{"127.0.0.1:" + port}
	if sockets {
		hosts = append(hosts, strings.ReplaceAll(socket, "/", "%2F"), strings.ReplaceAll(filepath.Join(dir, "mongodb-"+port+".sock"), "/", "%2F"))
	}
	if version6 {
		hosts = append(hosts, "[::1]:"+port)
	}
	for _, host := range hosts {
		if n := countDocs(t, "mongodb://"+host+"/", "c"); n != 0 {
			t.Errorf("%s: %d", host, n)
		}
	}
	// Everywhere, with a name that clients know.
	line, _ = service(t, nil, "--bind", "0.0.0.0", "--allow-unauthenticated", "--replset", "rs0", "--advertise", "localhost")
	if !strings.HasPrefix(line.Hosts[0], "localhost:") || countDocs(t, line.URI, "c") != 0 {
		t.Errorf("%+v", line)
	}
	line, _ = service(t, map[string]string{"MONGO_INITDB_ROOT_USERNAME": "a", "MONGO_INITDB_ROOT_PASSWORD": "b"}, "--bind", "0.0.0.0")
	if !strings.HasPrefix(line.Hosts[0], "127.0.0.1:") || countDocs(t, line.URI, "c") != 0 {
		t.Errorf("%+v", line)
	}
}

// TestServiceCertificates takes a certificate from files, and the next one when they change.
func TestServiceCertificates(t *testing.T) {
	issue := func(dir string) (cert string, ca string) {
		d := mongotest.Start(t, mongotest.TLS())
		ca, cert, err := d.WriteTLSFiles(dir)
		if err != nil {
			t.Fatal(err)
		}
		return cert, ca
	}
	dir, other := t.TempDir(), t.TempDir()
	cert, _ := issue(dir)
	line, stderr := service(t, nil, "--tls-cert", cert, "--ready-file", filepath.Join(dir, "ready"))
	insecure := line.URI + "&tlsInsecure=true"
	if countDocs(t, insecure, "c") != 0 || !strings.Contains(line.URI, "tls=true") {
		t.Error(line.URI)
	}
	if status := healthcheck(t.Context(), []string{"--ready-file", filepath.Join(dir, "ready")}, io.Discard, io.Discard); status != 0 {
		t.Errorf("status %d", status)
	}
	next, _ := issue(other)
	text, err := os.ReadFile(next)
	if err != nil {
		t.Fatal(err)
	}
	says := func(what string) {
		t.Helper()
		for !strings.Contains(stderr.String(), what) {
			select {
			case <-t.Context().Done():
				t.Fatal(stderr)
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	if err := os.WriteFile(cert, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	says("stays what it was")
	if countDocs(t, insecure, "c") != 0 {
		t.Error("it does not answer")
	}
	if err := os.WriteFile(cert, text, 0o600); err != nil {
		t.Fatal(err)
	}
	says("the certificate was read again")
	if countDocs(t, insecure, "c") != 0 {
		t.Error("it does not answer")
	}
}

// TestServiceLog has lines as servers log them, and no passwords.
func TestServiceLog(t *testing.T) {
	var stderr *output
	t.Run("", func(t *testing.T) {
		var line ready
		line, stderr = service(t, nil, "--log", "json", "-v", "--auth", "root:hunter2", "--tls")
		countDocs(t, line.URI, "c")
	})
	found := map[string]bool{}
	for text := range strings.SplitSeq(strings.TrimSpace(stderr.String()), "\n") {
		var line struct {
			T   map[string]string `json:"t"`
			S   string            `json:"s"`
			C   string            `json:"c"`
			Msg string            `json:"msg"`
		}
		if err := json.Unmarshal([]byte(text), &line); err != nil || line.S == "" || line.C == "" || len(line.T["$date"]) != 29 {
			t.Errorf("%s, %v", text, err)
		}
		found[line.Msg] = true
	}
	for _, msg := range []string{"certificate authority", "ready", "command", "told to end", "ended"} {
		if !found[msg] {
			t.Errorf("no %q in %s", msg, stderr)
		}
	}
	if strings.Contains(stderr.String(), "hunter2") {
		t.Error("the password is logged")
	}
}

// TestReadyFile is there when the deployment is ready, and at no other time.
func TestReadyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ready")
	health := func() (int, string) {
		var out bytes.Buffer
		return healthcheck(t.Context(), []string{"-ready-file", path}, &out, &out), out.String()
	}
	if status, out := health(); status != failed || !strings.Contains(out, "not ready") {
		t.Error(status, out)
	}
	writeFile(t, filepath.Dir(path), "ready", "stale")
	t.Run("", func(t *testing.T) {
		line, _ := service(t, nil, "--ready-file", path, "--auth", "a:b", "--replset", "rs0:3")
		if status, out := health(); status != 0 || out != "healthy\n" {
			t.Error(status, out)
		}
		if status := healthcheck(t.Context(), []string{"mongodb://" + line.Hosts[0] + "/?directConnection=true"}, io.Discard, io.Discard); status != 0 {
			t.Errorf("without a user the status is %d", status)
		}
		if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Error(info, err)
		}
	})
	if status, _ := health(); status != failed {
		t.Errorf("status %d after the end", status)
	}
	var out bytes.Buffer
	if status := healthcheck(t.Context(), []string{"-timeout", "50ms", "mongodb://" + fakeserver.Refuses + "/?directConnection=true"}, &out, &out); status != failed {
		t.Error(status, &out)
	}
	for _, args := range [][]string{{"a", "b"}, {"-timeout", "0s"}, {"nonsense"}, {"-ready-file", path, "mongodb://x"}} {
		if status := healthcheck(t.Context(), args, io.Discard, io.Discard); status != misused {
			t.Errorf("%v: %d", args, status)
		}
	}
}

// TestServiceRefuses: what is wrong ends the start with one line, which names it and says what was
// wanted, with exit status 2, and nothing listens.
func TestServiceRefuses(t *testing.T) {
	dir := t.TempDir()
	broken := writeFile(t, dir, "broken.pem", "x")
	writeFile(t, dir, "kept/app/c.bson", "\x05\x00\x00\x00\x00")
	writeFile(t, dir, "kept/app/c.metadata.json", `{"indexes":[],"options":{}}`)
	writeFile(t, dir, "scripts/a.js", "\ndb.c.insertOne(1)")
	writeFile(t, dir, "shell/a.sh", "")
	writeFile(t, dir, "seed/app/c.json", "{\"_id\":1}\n{\"_id\":1}")
	user := map[string]string{"MONGO_INITDB_ROOT_USERNAME": "root"}
	all := map[string]string{"MONGO_INITDB_ROOT_USERNAME": "root", "MONGO_INITDB_ROOT_PASSWORD": "x"}
	none := filepath.Join(dir, "none")
	for _, c := range []struct {
		env  map[string]string
		args []string
		want string
	}{
		{nil, []string{"--nosuch"}, "-nosuch"},
		{nil, []string{"--port", "x"}, "-port"},
		{nil, []string{"--replset", "rs0:x"}, `--replset "rs0:x": want NAME[:members]`},
		{nil, []string{"--replset", ":3"}, "want NAME[:members]"},
		{nil, []string{"--replset", "rs0:0"}, "--replset rs0:0: want 1 to 50 members"},
		{nil, []string{"--bind", "0.0.0.0"}, "--bind 0.0.0.0: others reach it: want --auth"},
		{nil, []string{"--bind", "::"}, "--bind ::: others reach it"},
		{nil, []string{"--bind", "127.0.0.1:5"}, "want a host without its port"},
		{nil, []string{"--bind", ""}, "want hosts"},
		{nil, []string{"--bind", "192.0.2.7", "--allow-unauthenticated"}, "--bind, --port: want addresses of this machine"},
		{nil, []string{"--bind", none + "/x.sock"}, "want a folder, or a path in a folder"},
		{nil, []string{"--bind", "0.0.0.0", "--allow-unauthenticated", "--replset", "rs0"}, "want --advertise HOST"},
		{nil, []string{"--advertise", "a:1"}, `--advertise "a:1": want the name`},
		{nil, []string{"--set-parameter", "x"}, "want NAME=VALUE"},
		{nil, []string{"--set-parameter", "nosuch=1"}, `--set-parameter: there is no server parameter "nosuch"`},
		{nil, []string{"--set-parameter", "ttlMonitorSleepSecs=x"}, `--set-parameter: server parameter "ttlMonitorSleepSecs" cannot be`},
		{nil, []string{"--like", "mysql"}, `--like "mysql": want one of atlas-flex, atlas-m0, cosmosdb`},
		{nil, []string{"--version", "3.6"}, `--version: server version "3.6" is not one of`},
		{nil, []string{"--log", "xml"}, `--log "xml": want text or json`},
		{nil, []string{"--tls-key", broken}, "want --tls-cert, too"},
		{nil, []string{"--tls-cert", none}, "--tls-cert: want a file with a certificate"},
		{nil, []string{"--tls-cert", broken}, "--tls-cert: want PEM with a certificate"},
		{nil, []string{"--tls-cert", broken, "--tls"}, "want one of them"},
		{nil, []string{"--ready-file", none + "/x"}, "--ready-file"},
		{nil, []string{"--init-scripts", none}, "--init-scripts"},
		{nil, []string{"--init-scripts", filepath.Join(dir, "scripts")}, "a.js:2:15: MongoshInvalidInputError: want a document"},
		{nil, []string{"--init-scripts", filepath.Join(dir, "shell")}, "a.sh: there is no shell here"},
		{nil, []string{"--seed", none}, "--seed: want a file or a folder"},
		{nil, []string{"--seed", filepath.Join(dir, "seed")}, "--seed: app/c.json:2:1: insert into app.c"},
		{nil, []string{"--data", broken}, "--data: "},
		{user, nil, "MONGO_INITDB_ROOT_USERNAME is set: want MONGO_INITDB_ROOT_PASSWORD"},
		{map[string]string{"MONGO_INITDB_DATABASE": "a/b"}, nil, "MONGO_INITDB_DATABASE: want the name of a database"},
		{map[string]string{"MONGO_INITDB_ROOT_USERNAME": "r", "MONGO_INITDB_ROOT_PASSWORD_FILE": none}, nil, "MONGO_INITDB_ROOT_PASSWORD_FILE: want a file"},
		{all, []string{"--auth", "a:b"}, "--auth and MONGO_INITDB_ROOT_USERNAME"},
	} {
		before := tree(t, filepath.Join(dir, "kept"))
		port := fakeserver.FreePorts(t, 1)
		args := c.args
		if !strings.Contains(strings.Join(args, " "), "--port") {
			args = append([]string{"--port", strconv.Itoa(port)}, args...)
		}
		var stdout, stderr bytes.Buffer
		status := serveWith(t.Context(), c.env, args, &stdout, &stderr)
		if status != misused || stdout.Len() > 0 || strings.Count(stderr.String(), "\n") != 1 || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("%v %v: status %d, %q, %q, want %s", c.env, c.args, status, &stdout, &stderr, c.want)
		}
		if l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port)); err != nil {
			t.Errorf("%v: %v", args, err)
		} else {
			l.Close()
		}
		same(t, strings.Join(c.args, " "), before, tree(t, filepath.Join(dir, "kept")))
	}
}

// A seed that fails half-way leaves a kept folder as it was.
func TestFailedSeedLeavesWhatIsKept(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	t.Run("", func(t *testing.T) {
		service(t, nil, "--data", data, "--seed", writeFile(t, dir, "first.json", `{"app.a":[{"_id":1}]}`))
	})
	before := tree(t, data)
	var stderr bytes.Buffer
	status := serveWith(t.Context(), nil, []string{"--port", "0", "--data", data, "--seed", writeFile(t, dir, "second.json", "{\"app.b\":[{\"_id\":1}],\n\"app.c\":[{\"_id\":1},{\"_id\":1}]}")}, io.Discard, &stderr)
	if status != misused || !strings.Contains(stderr.String(), "second.json:2:20: insert into app.c") {
		t.Errorf("%d, %s", status, &stderr)
	}
	same(t, "the folder", tree(t, data), before)
	if len(before) < 2 {
		t.Errorf("nothing is kept: %v", before)
	}
}
