//go:build unix

package mongotest_test

import (
	"bufio"
	"net"
	"syscall"
	"testing"
	"time"

	"allium/bson"
	"allium/internal/wire"
	"allium/mongotest"
)

// rawClient sends prepared messages and throws the replies away, so that nearly all of the CPU time is the server's.
type rawClient struct {
	c  net.Conn
	br *bufio.Reader
}

func (r *rawClient) roundTrip(b *testing.B, msg []byte) {
	if _, err := r.c.Write(msg); err != nil {
		b.Fatal(err)
	}
	head, err := r.br.Peek(wire.HeaderLen)
	if err != nil {
		b.Fatal(err)
	}
	h, err := wire.ParseHeader(head, wire.DefaultMaxMessageSize)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := r.br.Discard(int(h.Length)); err != nil {
		b.Fatal(err)
	}
}

func message(b *testing.B, cmd bson.D) []byte {
	doc, err := bson.Marshal(cmd)
	if err != nil {
		b.Fatal(err)
	}
	return wire.FinishMessage(append(wire.AppendMsg(nil, 1, 0, 0), doc...), 0)
}

// cpuTime returns the CPU time of the whole process, client included.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func benchServer(b *testing.B, opt mongotest.Option) (*mongotest.Deployment, *rawClient) {
	d, err := mongotest.Open(opt)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(d.Stop)
	c, err := net.Dial("tcp", d.Primary().Addr())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	return d, &rawClient{c, bufio.NewReaderSize(c, 64<<10)}
}

func measure(b *testing.B, f func(i int)) {
	b.ReportAllocs()
	start, i := cpuTime(), 0
	for b.Loop() {
		f(i)
		i++
	}
	b.ReportMetric(float64(cpuTime()-start)/float64(i), "cpu-ns/op")
}

func BenchmarkPing(b *testing.B) {
	_, r := benchServer(b, mongotest.Standalone())
	ping := message(b, bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}})
	measure(b, func(int) { r.roundTrip(b, ping) })
}

func BenchmarkFindByID(b *testing.B) {
	for name, opt := range map[string]mongotest.Option{"standalone": mongotest.Standalone(), "replicaset": mongotest.ReplicaSet(3)} {
		b.Run(name, func(b *testing.B) {
			_, r := benchServer(b, opt)
			docs := bson.A{}
			for i := range 10000 {
				docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "name", Value: "somebody"}, {Key: "age", Value: i % 100}})
			}
			r.roundTrip(b, message(b, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: docs}, {Key: "$db", Value: "b"}}))
			find := message(b, bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "_id", Value: 5000}}}, {Key: "limit", Value: 1}, {Key: "singleBatch", Value: true}, {Key: "$db", Value: "b"}})
			measure(b, func(int) { r.roundTrip(b, find) })
		})
	}
}

func BenchmarkInsert(b *testing.B) {
	for name, opt := range map[string]mongotest.Option{"standalone": mongotest.Standalone(), "replicaset": mongotest.ReplicaSet(3)} {
		b.Run(name, func(b *testing.B) {
			_, r := benchServer(b, opt)
			insert := message(b, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "name", Value: "somebody"}, {Key: "age", Value: 7}}}}, {Key: "$db", Value: "b"}})
			measure(b, func(int) { r.roundTrip(b, insert) })
		})
	}
}

// BenchmarkStart starts and stops a replica set of three members.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		d, err := mongotest.Open(mongotest.ReplicaSet(3))
		if err != nil {
			b.Fatal(err)
		}
		d.Stop()
	}
}
