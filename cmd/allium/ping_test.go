package main

import (
	"bytes"
	"net/url"
	"strings"
	"testing"

	"allium/internal/fakeserver"
	"allium/mongotest"
)

func TestPing(t *testing.T) {
	plain := mongotest.Start(t, mongotest.ReplicaSet(3))
	secure := mongotest.Start(t, mongotest.TLS(), mongotest.Auth("root", "open sesame"))
	ca, certKey, err := secure.WriteTLSFiles(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := secure.AddUser(mongotest.User{Name: secure.ClientSubject(), DB: "$external"}); err != nil {
		t.Fatal(err)
	}
	root := "mongodb://root:open%20sesame@" + secure.Hosts()[0] + "/?tls=true&tlsCAFile=" + url.QueryEscape(ca)
	tests := []struct {
		name, uri string
		status    int
		out, err  []string // what must be printed
	}{
		{"replica set", "mongodb://" + plain.Hosts()[1] + "/?replicaSet=rs0&compressors=zstd", 0,
			append(plain.Hosts(), "RSPrimary", "RSSecondary", "zstd", "none"), nil},
		{"compressors of the server", "mongodb://" + plain.Hosts()[1] + "/", 0, []string{"zstd,snappy,zlib"}, nil},
		{"TLS and SCRAM", root, 0, []string{"Standalone", "1.3", "SCRAM-SHA-256"}, nil},
		{"X.509", "mongodb://" + secure.Hosts()[0] + "/?authMechanism=MONGODB-X509&tlsCAFile=" + url.QueryEscape(ca) + "&tlsCertificateKeyFile=" + url.QueryEscape(certKey), 0,
			[]string{"MONGODB-X509"}, nil},
		{"wrong password", strings.Replace(root, "open%20sesame", "hunter2", 1), 1, nil, []string{`authentication of user "root" of database "admin" with SCRAM-SHA-256`, "(18)"}},
		{"unknown authority", "mongodb://" + secure.Hosts()[0] + "/?tls=true", 1, nil, []string{"TLS handshake", "unknown authority"}},
		{"no TLS", "mongodb://" + secure.Hosts()[0] + "/", 1, nil, []string{"hello"}},
		{"fakeserver.Refuses there", "mongodb://" + fakeserver.Refuses + "/", 1, nil, []string{"dial", "connection refused"}},
		{"wrong replica set", "mongodb://" + plain.Hosts()[0] + "/?replicaSet=other", 1, nil, []string{`"rs0"`, `"other"`}},
		{"bad option", "mongodb://h/?tls=true&ssl=false", 1, nil, []string{"tls"}},
		{"missing file", "mongodb://h/?tlsCAFile=/nonexistent", 1, nil, []string{"tlsCAFile /nonexistent"}},
		{"no string", "", 1, nil, []string{"scheme"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if status := run(t.Context(), []string{"ping", tt.uri}, &stdout, &stderr); status != tt.status {
				t.Errorf("status %d, want %d; %s", status, tt.status, &stderr)
			}
			for _, want := range tt.out {
				if !strings.Contains(stdout.String(), want) {
					t.Errorf("output lacks %q:\n%s", want, &stdout)
				}
			}
			for _, want := range tt.err {
				if !strings.Contains(stderr.String(), want) {
					t.Errorf("errors lack %q:\n%s", want, &stderr)
				}
			}
			if strings.Contains(stderr.String()+stdout.String(), "hunter2") {
				t.Errorf("the password is printed:\n%s%s", &stdout, &stderr)
			}
		})
	}
}
