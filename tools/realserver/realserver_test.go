package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/mongotest"
)

// The test's program plays the parts of those that the command starts.
func TestMain(m *testing.M) {
	switch strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") {
	case "mongod", "mongos":
		play(os.Args[1:])
	case "docker": // run --rm --network host IMAGE PROGRAM ...
		play(os.Args[7:])
	case "command":
		command()
	}
	os.Exit(m.Run())
}

// played is where the parts leave what they did.
func played(name string) string { return filepath.Join(os.Getenv("REALSERVER_TEST"), name) }

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// play is a server: mongotest, which forms a set when it is told to. Since a set of mongotest is
// one process, the members give their ports to the one that is told.
func play(args []string) {
	var port int
	var set, config string
	f := flag.NewFlagSet("", flag.ContinueOnError)
	f.IntVar(&port, "port", 0, "")
	f.StringVar(&set, "replSet", "", "")
	f.StringVar(&config, "configdb", "", "")
	for _, name := range []string{"dbpath", "bind_ip", "setParameter"} {
		f.String(name, "", "")
	}
	behind := f.Bool("configsvr", false, "")
	f.BoolVar(behind, "shardsvr", false, "")
	check(f.Parse(args))
	text, err := json.Marshal(os.Args)
	check(err)
	check(os.WriteFile(played(fmt.Sprintf("args-%d", port)), text, 0o644))
	if os.Getenv("REALSERVER_FAILS") != "" {
		check(errors.New("the address is in use"))
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, os.Interrupt)
	switch {
	case config != "" && !free(port): // the first mongos plays both
	case config != "":
		d, err := mongotest.Open(mongotest.Sharded(2, 2), mongotest.Port(port))
		check(err)
		d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
			if c.Name != "addShard" {
				return nil, nil
			}
			name, _, _ := strings.Cut(c.Body.Lookup("addShard").String(), "/")
			check(os.WriteFile(played("added-"+strings.Trim(name, `"`)), nil, 0o644))
			return bson.Marshal(bson.D{{Key: "ok", Value: 1}})
		})
	default:
		d, err := mongotest.Open(mongotest.Port(port))
		check(err)
		if set != "" {
			go member(d, port, set, *behind)
		}
	}
	<-end
	os.Exit(0)
}

// member waits until it is told to form a set, or to make room for one. One that is behind a mongos
// makes room for that one's own. Who has told it must have the reply: it waits until that client
// says goodbye, by endSessions.
func member(alone *mongotest.Deployment, port int, set string, behind bool) {
	told := make(chan bson.Raw, 1)
	var initiate atomic.Pointer[bson.Raw]
	alone.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
		switch c.Name {
		case "replSetInitiate":
			initiate.Store(new(slices.Clone(c.Body)))
			return bson.Marshal(bson.D{{Key: "ok", Value: 1}})
		case "endSessions":
			if body := initiate.Swap(nil); body != nil {
				told <- *body
			}
		}
		return nil, nil
	})
	room := played(fmt.Sprintf("room-%d", port))
	for {
		select {
		case body := <-told:
			var command struct {
				Config struct {
					ID      string `bson:"_id"`
					Members []struct{ Host string }
				} `bson:"replSetInitiate"`
			}
			check(bson.Unmarshal(body, &command))
			if command.Config.ID != set || command.Config.Members[0].Host != address(port) {
				check(fmt.Errorf("told to form %+v", command))
			}
			alone.Stop()
			if behind {
				return
			}
			n := len(command.Config.Members)
			for i := 1; i < n; i++ {
				check(os.WriteFile(played(fmt.Sprintf("room-%d", port+i)), nil, 0o644))
				for !free(port + i) {
					time.Sleep(5 * time.Millisecond)
				}
			}
			d, err := mongotest.Open(mongotest.ReplicaSet(n), mongotest.SetName(set), mongotest.Port(port))
			check(err)
			d.FailCommand(mongotest.Fail{Commands: []string{"replSetInitiate"}, Code: alreadyInitialized})
			return
		case <-time.After(5 * time.Millisecond):
			if _, err := os.Stat(room); err == nil {
				alone.Stop()
				return
			}
		}
	}
}

func free(port int) bool {
	l, err := net.Listen("tcp", address(port))
	if err == nil {
		l.Close()
	}
	return err == nil
}

// command is what runs on the deployment: it looks at it and ends with status 3.
func command() {
	client, err := allium.Open(os.Getenv("MONGODB_URI"))
	check(err)
	defer client.Close(context.Background())
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err = client.Database("app").Collection("users").InsertOne(ctx, bson.D{})
	check(err)
	check(client.Ready(ctx))
	t := client.Topology()
	check(os.WriteFile(played("seen"), fmt.Appendf(nil, "%v of %d", t.Kind, len(t.Servers)), 0o644))
	os.Exit(3)
}

// stage is a folder with the programs of the play; what they leave is in it, too.
func stage(t *testing.T) (dir string, s settings) {
	t.Helper()
	dir = t.TempDir()
	t.Setenv("REALSERVER_TEST", dir)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := func(name string) string {
		if runtime.GOOS == "windows" {
			name += ".exe"
		}
		name = filepath.Join(dir, name)
		if os.Link(self, name) != nil {
			from, err := os.Open(self)
			if err != nil {
				t.Fatal(err)
			}
			defer from.Close()
			to, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o755)
			if err == nil {
				_, err = io.Copy(to, from)
			}
			if err := errors.Join(err, to.Close()); err != nil {
				t.Fatal(err)
			}
		}
		return name
	}
	s = settings{mongod: program("mongod"), mongos: program("mongos"), logs: filepath.Join(dir, "logs"), port: ports(t, 5)}
	program("docker")
	program("command")
	return dir, s
}

// ports returns the first of n free ports. They are below those that systems give to whoever asks
// for any: connections and listeners of other tests would take them before a server does.
func ports(t *testing.T, n int) int {
	for range 100 {
		first := 10_000 + rand.IntN(20_000)
		all := true
		for i := range n {
			all = all && free(first+i)
		}
		if all {
			return first
		}
	}
	t.Fatal("no free ports")
	return 0
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

func TestTopologies(t *testing.T) {
	for _, c := range []struct{ topology, image, want string }{
		{"standalone", "", "Single of 1"}, {"replset", "", "ReplicaSetWithPrimary of 3"}, {"sharded", "", "Sharded of 2"},
		{"standalone", "mongo:8.0", "Single of 1"}, {"replset", "mongo:8.0", "ReplicaSetWithPrimary of 3"}, {"sharded", "mongo:8.0", "Sharded of 2"},
	} {
		t.Run(c.topology+" "+c.image, func(t *testing.T) {
			dir, s := stage(t)
			s.topology, s.image = c.topology, c.image
			if c.image != "" {
				t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
				s.mongod, s.mongos = "mongod", "mongos"
			}
			temp := t.TempDir()
			t.Setenv("TMPDIR", temp)
			err := run(t.Context(), s, []string{filepath.Join(dir, "command")})
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 3 {
				t.Fatalf("the command's status: %v", err)
			}
			if got := read(t, filepath.Join(dir, "seen")); got != c.want {
				t.Errorf("the command finds %s, want %s", got, c.want)
			}
			if c.topology == "sharded" {
				read(t, filepath.Join(dir, "added-shard0"))
				read(t, filepath.Join(dir, "added-shard1"))
			}
			if c.image != "" && !strings.HasPrefix(read(t, filepath.Join(dir, fmt.Sprintf("args-%d", s.port))), `["docker","run","--rm","--network","host","mongo:8.0","mongo`) {
				t.Error("docker is not told what to run")
			}
			for i := range 5 {
				if !free(s.port + i) {
					t.Errorf("port %d is still in use", s.port+i)
				}
			}
			if left, _ := os.ReadDir(temp); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// What is wrong is said, with what the server printed, and nothing is left behind.
func TestErrors(t *testing.T) {
	dir, s := stage(t)
	never := []string{filepath.Join(dir, "no command is run")}
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	s.topology = "ring"
	if err := run(t.Context(), s, never); err == nil || !strings.Contains(err.Error(), `"ring"`) {
		t.Errorf("a topology that does not exist: %v", err)
	}
	s.topology = "replset"
	missing := s
	missing.mongod = filepath.Join(dir, "gone", "mongod")
	if err := run(t.Context(), missing, never); err == nil || !strings.Contains(err.Error(), "member0: ") {
		t.Errorf("a program that is not there: %v", err)
	}
	t.Setenv("REALSERVER_FAILS", "1")
	if err := run(t.Context(), s, never); err == nil || !strings.Contains(err.Error(), "has ended") || !strings.Contains(err.Error(), "the address is in use") {
		t.Errorf("a server that ends at once: %v", err)
	}
	t.Setenv("REALSERVER_FAILS", "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, s, never); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if left, _ := os.ReadDir(temp); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
