package kerberos_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"allium/auth"
	"allium/kerberos"
	"allium/kerberos/internal/kdctest"
)

// The tests of this file have MIT's implementation of GSS-API on the other side, so that an error
// that client and acceptor of this module have in common is found.

// TestPyMongo: the official Python driver, on MIT's library, authenticates with the acceptor.
func TestPyMongo(t *testing.T) {
	python := ""
	for _, p := range []string{"python3", "/usr/bin/python3"} { // the first may be another than Debian's
		if exec.Command(p, "-c", "import pymongo, kerberos").Run() == nil {
			python = p
			break
		}
	}
	if python == "" {
		t.Skip("no pymongo with Kerberos here: install Debian's packages python3-pymongo and python3-kerberos")
	}
	r := start(t)
	cache := r.KInit("ada.cache", "ada", "lovelace", "1h")
	script := fmt.Sprintf(`
from pymongo import MongoClient
c = MongoClient("mongodb://%s@%s/?authMechanism=GSSAPI", serverSelectionTimeoutMS=20000)
print(c.db.coll.insert_one({"_id": 1}).acknowledged)
`, ada, r.d.Hosts()[0])
	cmd := exec.Command(python, "-c", script)
	cmd.Env = r.Environ("KRB5CCNAME=FILE:" + cache)
	out, err := cmd.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "True" {
		t.Errorf("%v\n%s", err, out)
	}
}

// The flags of the tokens that MIT's sample programs exchange, each with its length in front.
const (
	sampleNoop        = 1
	sampleContext     = 2
	sampleData        = 4
	sampleContextNext = 16
	sampleWrapped     = 32
)

func sendSample(t *testing.T, w io.Writer, flags byte, token []byte) {
	t.Helper()
	if _, err := w.Write(append(binary.BigEndian.AppendUint32([]byte{flags}, uint32(len(token))), token...)); err != nil {
		t.Fatal(err)
	}
}

func receiveSample(t *testing.T, r io.Reader) (flags byte, token []byte) {
	t.Helper()
	head := make([]byte, 5)
	if _, err := io.ReadFull(r, head); err != nil {
		t.Fatal(err)
	}
	token = make([]byte, binary.BigEndian.Uint32(head[1:]))
	if _, err := io.ReadFull(r, token); err != nil {
		t.Fatal(err)
	}
	return head[0], token
}

// TestSampleServer: MIT's acceptor takes the client's tokens, proves itself, and reads its
// messages.
func TestSampleServer(t *testing.T) {
	program := kdctest.Find(t, "gss-server", "krb5-gss-samples")
	r := start(t)
	addr := kdctest.FreeAddr(t)
	_, port, _ := net.SplitHostPort(addr)
	server := exec.Command(program, "-port", port, "-once", "mongodb@localhost")
	server.Env = r.Environ("KRB5_KTNAME=FILE:" + r.keytab)
	var out bytes.Buffer
	server.Stdout, server.Stderr = &out, &out
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { server.Wait(); close(ended) }()
	t.Cleanup(func() { server.Process.Kill(); <-ended })
	var c net.Conn
	for c == nil {
		var err error
		if c, err = net.Dial("tcp", addr); err != nil {
			select {
			case <-ended:
				t.Fatalf("gss-server ended: %s", out.String())
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	defer c.Close()
	k := kerberos.New(kerberos.Options{ConfigFile: r.Config})
	gc, err := k.Begin(t.Context(), auth.GSSAPIParams{Username: "ada", Password: "lovelace", ServiceName: "mongodb", ServiceHost: "localhost"})
	if err != nil {
		t.Fatal(err)
	}
	first, _, err := gc.Step(nil)
	if err != nil {
		t.Fatal(err)
	}
	sendSample(t, c, sampleNoop|sampleContextNext, nil)
	sendSample(t, c, sampleContext, first)
	_, reply := receiveSample(t, c)
	if _, done, err := gc.Step(reply); err != nil || !done {
		t.Fatalf("established %v, %v", done, err)
	}
	for _, text := range []string{"first message", "second message"} { // two, for their numbers
		m, err := gc.Wrap([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		sendSample(t, c, sampleData|sampleWrapped, m)
	}
	sendSample(t, c, sampleNoop, nil)
	<-ended
	for _, want := range []string{`Accepted connection: "ada@ALLIUM.TEST"`, `"first message"`, `"second message"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("gss-server does not say %s:\n%s", want, out.String())
		}
	}
}

// TestSampleClient: MIT's initiator takes the acceptor's token, and the acceptor reads its
// messages.
func TestSampleClient(t *testing.T) {
	program := kdctest.Find(t, "gss-client", "krb5-gss-samples")
	r := start(t)
	cache := r.KInit("ada.cache", "ada", "lovelace", "1h")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	client := exec.Command(program, "-port", port, "-seq", "-nx", "-nm", "127.0.0.1", "mongodb@localhost", "a message")
	client.Env = r.Environ("KRB5CCNAME=FILE:" + cache)
	var out bytes.Buffer
	client.Stdout, client.Stderr = &out, &out
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { client.Wait(); l.Close(); close(ended) }() // it may end before it connects
	t.Cleanup(func() { client.Process.Kill(); <-ended })
	c, err := l.Accept()
	if err != nil {
		<-ended
		t.Fatalf("%v\n%s", err, out.String())
	}
	defer c.Close()
	in := bufio.NewReader(c)
	flags, token := receiveSample(t, in)
	if flags&sampleContextNext != 0 {
		_, token = receiveSample(t, in)
	}
	reply, gc, err := r.acceptor.Accept(token)
	if err != nil {
		t.Fatal(err)
	}
	sendSample(t, c, sampleContext, reply)
	flags, token = receiveSample(t, in)
	text, err := gc.Unwrap(token)
	if err != nil || string(text) != "a message" || flags&sampleWrapped == 0 || gc.Principal() != "ada@ALLIUM.TEST" {
		t.Errorf("message %q of %s, flags %#x, %v\n%s", text, gc.Principal(), flags, err, out.String())
	}
}
