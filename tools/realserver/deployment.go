package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"allium"
	"allium/bson"
	"allium/mongoerr"
)

// settings are the command line.
type settings struct {
	topology       string
	mongod, mongos string
	image          string
	port           int
	logs           string
}

// deployment is what was started.
type deployment struct {
	settings
	uri     string
	dir     string // with the folders of data
	servers []*server
}

// server is a process.
type server struct {
	name, addr string
	cmd        *exec.Cmd
	log        string
	ended      chan struct{} // is closed when the process has ended; err is set then
	err        error
}

const alreadyInitialized = 23 // what a set says whose first answer was lost

const (
	patience = 2 * time.Minute // for a server to answer, and for a set to have its primary
	mercy    = 15 * time.Second
)

// start starts the deployment. What was started before an error is in the result, too.
func start(ctx context.Context, s settings) (*deployment, error) {
	d := &deployment{settings: s}
	var err error
	if d.dir, err = os.MkdirTemp("", "realserver"); err != nil {
		return d, err
	}
	if err := os.MkdirAll(s.logs, 0o755); err != nil {
		return d, err
	}
	switch s.topology {
	case "standalone":
		err = d.set(ctx, "server", s.port, 1, "")
		d.uri = uri("", s.port)
	case "replset":
		err = d.set(ctx, "member", s.port, 3, "rs0")
		d.uri = uri("replicaSet=rs0&", s.port, s.port+1, s.port+2)
	case "sharded":
		err = d.cluster(ctx)
		d.uri = uri("", s.port, s.port+1)
	default:
		err = fmt.Errorf("no topology %q", s.topology)
	}
	return d, err
}

// uri is a connection string for tests: clients look every half second how servers are.
func uri(options string, ports ...int) string {
	hosts := make([]string, len(ports))
	for i, port := range ports {
		hosts[i] = address(port)
	}
	return "mongodb://" + strings.Join(hosts, ",") + "/?" + options + "heartbeatFrequencyMS=500"
}

func address(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }

// set starts servers, which are a replica set if it has a name.
func (d *deployment) set(ctx context.Context, name string, port, n int, set string, args ...string) error {
	if set != "" {
		args = append(args, "--replSet", set)
	}
	members := bson.A{}
	for i := range n {
		if err := d.mongodProcess(fmt.Sprintf("%s%d", name, i), port+i, args...); err != nil {
			return err
		}
		members = append(members, bson.D{{Key: "_id", Value: i}, {Key: "host", Value: address(port + i)}})
	}
	for _, s := range d.servers[len(d.servers)-n:] {
		if err := d.await(ctx, s, bson.D{{Key: "hello", Value: 1}}); err != nil {
			return err
		}
	}
	if set == "" {
		return nil
	}
	config := bson.D{{Key: "_id", Value: set}, {Key: "members", Value: members}}
	if slices.Contains(args, "--configsvr") {
		config = append(config, bson.E{Key: "configsvr", Value: true})
	}
	first := d.servers[len(d.servers)-n]
	return d.await(ctx, first, bson.D{{Key: "replSetInitiate", Value: config}})
}

// cluster starts mongoses at the first two ports; their config server and two shards, each a
// replica set of one member, are at the next ones.
func (d *deployment) cluster(ctx context.Context) error {
	config, shards := d.port+2, []int{d.port + 3, d.port + 4}
	if err := d.set(ctx, "config", config, 1, "config", "--configsvr"); err != nil {
		return err
	}
	for i, port := range shards {
		name := fmt.Sprintf("shard%d", i)
		if err := d.set(ctx, name, port, 1, name, "--shardsvr"); err != nil {
			return err
		}
	}
	for i := range 2 {
		args := []string{"--configdb", "config/" + address(config)}
		if err := d.process(fmt.Sprintf("mongos%d", i), d.mongos, d.port+i, args...); err != nil {
			return err
		}
		if err := d.await(ctx, d.servers[len(d.servers)-1], bson.D{{Key: "hello", Value: 1}}); err != nil {
			return err
		}
	}
	for i, port := range shards {
		add := bson.D{{Key: "addShard", Value: fmt.Sprintf("shard%d/%s", i, address(port))}}
		if err := d.await(ctx, d.servers[len(d.servers)-2], add); err != nil {
			return err
		}
	}
	return nil
}

func (d *deployment) mongodProcess(name string, port int, args ...string) error {
	data := "/data/db" // of the container
	if d.image == "" {
		data = filepath.Join(d.dir, name)
		if err := os.Mkdir(data, 0o755); err != nil {
			return err
		}
	}
	return d.process(name, d.mongod, port, append([]string{"--dbpath", data}, args...)...)
}

// process starts a server.
func (d *deployment) process(name, program string, port int, args ...string) error {
	args = append(args, "--port", strconv.Itoa(port), "--bind_ip", "127.0.0.1", "--setParameter",
		"enableTestCommands=1")
	cmd := exec.Command(program, args...)
	if d.image != "" {
		// In the foreground docker hands signals on, and ends with what it runs.
		cmd = exec.Command("docker", append([]string{"run", "--rm", "--network", "host", d.image, program}, args...)...)
	}
	s := &server{name: name, addr: address(port), cmd: cmd, log: filepath.Join(d.logs, name+".log"),
		ended: make(chan struct{})}
	log, err := os.Create(s.log)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	d.servers = append(d.servers, s)
	go func() {
		defer close(s.ended)
		s.err = cmd.Wait()
	}()
	return nil
}

// await sends a command to a server until it succeeds.
func (d *deployment) await(ctx context.Context, s *server, command bson.D) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client, err := allium.Open("mongodb://"+s.addr+"/?directConnection=true", allium.ClientOptions{
		AppName: "realserver", Timeout: new(5 * time.Second), HeartbeatInterval: new(500 * time.Millisecond),
	})
	if err != nil {
		return err
	}
	defer client.Close(context.WithoutCancel(ctx))
	for {
		_, err := client.Database("admin").RunCommand(ctx, command)
		if err == nil || mongoerr.HasCode(err, alreadyInitialized) {
			return nil
		}
		select {
		case <-s.ended:
			return fmt.Errorf("%s has ended: %w\n%s", s.name, errors.Join(s.err, err), tail(s.log))
		case <-ctx.Done():
			return fmt.Errorf("%s: %w\n%s", s.name, err, tail(s.log))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// tail returns the last lines of a log.
func tail(name string) string {
	text, err := os.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

// end ends the servers, the last first, and removes their data. A server that does not end by
// itself is killed.
func (d *deployment) end() error {
	var errs []error
	for i := len(d.servers) - 1; i >= 0; i-- {
		s := d.servers[i]
		terminate(s.cmd.Process)
		select {
		case <-s.ended:
		case <-time.After(mercy):
			errs = append(errs, fmt.Errorf("%s does not end: killed", s.name), s.cmd.Process.Kill())
			<-s.ended
		}
	}
	if d.dir != "" {
		errs = append(errs, os.RemoveAll(d.dir))
	}
	return errors.Join(errs...)
}
