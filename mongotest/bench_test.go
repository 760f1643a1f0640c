//go:build unix

package mongotest_test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"allium/bson"
	"allium/internal/norace"
	"allium/internal/wire"
	"allium/mongotest"
)

// The benchmarks report the processor time of the server alone: the client is a process of its own,
// this test binary with benchClient in its environment.
const benchClient = "MONGOTEST_BENCH_CLIENT"

func TestMain(m *testing.M) {
	if addr := os.Getenv(benchClient); addr != "" {
		if err := runClient(addr, os.Args[1], os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// benchCommands are what a client can send over and over.
var benchCommands = map[string]func(dst []byte, i int32) []byte{
	"insert": insertCommand, "find": findCommand, "update": updateCommand, "ping": pingCommand,
}

// runClient connects, says that it is ready, and when it is told to start sends n commands on its
// connection.
func runClient(addr, command, count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	c, err := dialBench(addr)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.send(0, insertCommand); err != nil {
		return err
	}
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	for i := range n {
		if err := c.send(int32(i+1), benchCommands[command]); err != nil {
			return err
		}
	}
	fmt.Println("done")
	return nil
}

// benchConn sends commands without allocating anything.
type benchConn struct {
	net.Conn
	buf, msg []byte
}

func dialBench(addr string) (*benchConn, error) {
	c, err := net.Dial("tcp", addr)
	return &benchConn{Conn: c, buf: make([]byte, 64<<10)}, err
}

func (c *benchConn) send(i int32, command func(dst []byte, i int32) []byte) error {
	c.msg = wire.FinishMessage(command(wire.AppendMsg(c.msg[:0], i, 0, 0), i), 0)
	if _, err := c.Write(c.msg); err != nil {
		return err
	}
	if _, err := io.ReadFull(c, c.buf[:4]); err != nil {
		return err
	}
	size := int(c.buf[0]) | int(c.buf[1])<<8 | int(c.buf[2])<<16
	if _, err := io.ReadFull(c, c.buf[4:size]); err != nil {
		return err
	}
	if ok, _ := bson.Raw(c.buf[21:size]).Lookup("ok").Double(); ok != 1 {
		return fmt.Errorf("%s: %s", command(nil, i), bson.Raw(c.buf[21:size]))
	}
	return nil
}

// TestAllocations holds what the server allocates for a command on a collection that is small: in
// a large one there are more nodes above a document.
func TestAllocations(t *testing.T) {
	norace.Skip(t, "it allocates by itself")
	for _, test := range []struct {
		topology                   string
		opts                       []mongotest.Option
		ping, find, update, insert float64
	}{
		{"standalone", nil, 0, 9, 12, 16},
		{"replica set", []mongotest.Option{mongotest.ReplicaSet(3)}, 0, 9, 19, 19},
		{"sharded", []mongotest.Option{mongotest.Sharded(2, 1)}, 0, 9, 23, 23},
	} {
		d := mongotest.Start(t, test.opts...)
		c, err := dialBench(d.Hosts()[0])
		if err != nil {
			t.Fatal(err)
		}
		i := int32(0)
		ok := c.send(i, insertCommand)
		for _, x := range []struct {
			name string
			most float64
		}{{"ping", test.ping}, {"find", test.find}, {"update", test.update}, {"insert", test.insert}} {
			n := testing.AllocsPerRun(2000, func() {
				i++
				if err := c.send(i, benchCommands[x.name]); err != nil && ok == nil {
					ok = err
				}
			})
			if n > x.most {
				t.Errorf("%s: %s takes %v allocations, more than %v", test.topology, x.name, n, x.most)
			}
		}
		if c.Close(); ok != nil {
			t.Error(ok)
		}
	}
}

func cpu() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func benchmarkCommand(b *testing.B, command string, opts ...mongotest.Option) {
	d, err := mongotest.Open(opts...)
	if err != nil {
		b.Fatal(err)
	}
	defer d.Stop()
	benchmarkServer(b, command, d.Hosts()[0])
}

// benchmarkServer has another process send commands to a server in this one.
func benchmarkServer(b *testing.B, command, addr string) {
	client := exec.Command(os.Args[0], command, strconv.Itoa(b.N))
	client.Env = append(os.Environ(), benchClient+"="+addr)
	client.Stderr = os.Stderr
	in, err := client.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := client.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := client.Start(); err != nil {
		b.Fatal(err)
	}
	said := bufio.NewReader(out)
	expect := func(want string) {
		if line, err := said.ReadString('\n'); line != want+"\n" {
			b.Fatalf("the client says %q instead of %q: %v", line, want, err)
		}
	}
	expect("ready")
	b.ReportAllocs()
	b.ResetTimer()
	before := cpu()
	if _, err := io.WriteString(in, "\n"); err != nil {
		b.Fatal(err)
	}
	expect("done")
	b.StopTimer()
	b.ReportMetric(float64(cpu()-before)/float64(b.N), "cpu-ns/op")
	if err := client.Wait(); err != nil {
		b.Fatal(err)
	}
}

func insertCommand(dst []byte, i int32) []byte {
	at, doc := bson.BeginDocument(dst)
	doc = bson.AppendString(doc, "insert", "c")
	list, doc := bson.BeginArrayElement(doc, "documents")
	one, doc := bson.BeginDocument(bson.AppendIndexHeader(doc, bson.TypeEmbeddedDocument, 0))
	doc = bson.AppendInt32(doc, "_id", i)
	doc = bson.AppendString(doc, "name", "a name of some length")
	doc = bson.EndDocument(bson.EndDocument(doc, one), list)
	doc = bson.AppendString(doc, "$db", "t")
	return bson.EndDocument(doc, at)
}

func findCommand(dst []byte, i int32) []byte {
	at, doc := bson.BeginDocument(dst)
	doc = bson.AppendString(doc, "find", "c")
	f, doc := bson.BeginDocumentElement(doc, "filter")
	doc = bson.EndDocument(bson.AppendInt32(doc, "_id", 0), f)
	doc = bson.AppendString(doc, "$db", "t")
	return bson.EndDocument(doc, at)
}

// updateCommand changes a field of the one document that is there before the others.
func updateCommand(dst []byte, i int32) []byte {
	at, doc := bson.BeginDocument(dst)
	doc = bson.AppendString(doc, "update", "c")
	list, doc := bson.BeginArrayElement(doc, "updates")
	one, doc := bson.BeginDocument(bson.AppendIndexHeader(doc, bson.TypeEmbeddedDocument, 0))
	q, doc := bson.BeginDocumentElement(doc, "q")
	doc = bson.EndDocument(bson.AppendInt32(doc, "_id", 0), q)
	u, doc := bson.BeginDocumentElement(doc, "u")
	set, doc := bson.BeginDocumentElement(doc, "$set")
	doc = bson.EndDocument(bson.EndDocument(bson.AppendInt32(doc, "n", i), set), u)
	doc = bson.EndDocument(bson.EndDocument(doc, one), list)
	doc = bson.AppendString(doc, "$db", "t")
	return bson.EndDocument(doc, at)
}

func pingCommand(dst []byte, _ int32) []byte {
	at, doc := bson.BeginDocument(dst)
	doc = bson.AppendInt32(doc, "ping", 1)
	doc = bson.AppendString(doc, "$db", "t")
	return bson.EndDocument(doc, at)
}

func benchmarkTopologies(b *testing.B, command string) {
	b.Run("standalone", func(b *testing.B) { benchmarkCommand(b, command) })
	b.Run("replicaset", func(b *testing.B) { benchmarkCommand(b, command, mongotest.ReplicaSet(3)) })
	b.Run("sharded", func(b *testing.B) { benchmarkCommand(b, command, mongotest.Sharded(2, 1)) })
}

func BenchmarkInsert(b *testing.B)   { benchmarkTopologies(b, "insert") }
func BenchmarkFindByID(b *testing.B) { benchmarkTopologies(b, "find") }
func BenchmarkUpdate(b *testing.B)   { benchmarkTopologies(b, "update") }
func BenchmarkPing(b *testing.B)     { benchmarkTopologies(b, "ping") }

// BenchmarkExchange is what the others cannot do without: a server that reads a message and writes
// an answer of the size of a find's, and does nothing else.
func BenchmarkExchange(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			answer(c)
		}
	}()
	benchmarkServer(b, "find", l.Addr().String())
}

// answer answers every message on a connection alike.
func answer(c net.Conn) {
	defer c.Close()
	reply := wire.AppendMsg(nil, 1, 1, 0)
	at, reply := bson.BeginDocument(reply)
	reply = bson.AppendString(reply, "padding", strings.Repeat("x", 100))
	reply = wire.FinishMessage(bson.EndDocument(bson.AppendDouble(reply, "ok", 1), at), 0)
	br := bufio.NewReaderSize(c, 16<<10)
	for {
		head, err := br.Peek(4)
		if err != nil {
			return
		}
		if _, err := br.Discard(int(binary.LittleEndian.Uint32(head))); err != nil {
			return
		}
		if _, err := c.Write(reply); err != nil {
			return
		}
	}
}

// BenchmarkStart starts and stops a replica set of three members.
func BenchmarkStart(b *testing.B) {
	before := cpu()
	for b.Loop() {
		d, err := mongotest.Open(mongotest.ReplicaSet(3))
		if err != nil {
			b.Fatal(err)
		}
		d.Stop()
	}
	b.ReportMetric(float64(cpu()-before)/float64(b.N), "cpu-ns/op")
}

// BenchmarkIdle lets a replica set of three members with a client's connection that has nothing to
// do stand for a second.
func BenchmarkIdle(b *testing.B) {
	d, err := mongotest.Open(mongotest.ReplicaSet(3))
	if err != nil {
		b.Fatal(err)
	}
	defer d.Stop()
	before := cpu()
	start := time.Now()
	for b.Loop() {
		time.Sleep(time.Second)
	}
	b.ReportMetric(float64(cpu()-before)/float64(time.Since(start))*100, "%cpu")
}
