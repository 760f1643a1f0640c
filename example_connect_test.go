package allium_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"time"

	"allium"
	"allium/mongotest"
)

// What a program in production sets: docs/production.md says why.
func ExampleClientOptions() {
	d, err := mongotest.Open(mongotest.ReplicaSet(3))
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	uri := d.URI() // of a program: os.Getenv("MONGODB_URI")

	client, err := allium.Open(uri, allium.ClientOptions{
		AppName:     "shop",
		Timeout:     new(10 * time.Second),
		MaxPoolSize: new(50),
		Compressors: []string{"zstd", "snappy"},
		Logger:      slog.Default(),
		LogLevels: map[allium.LogComponent]slog.Level{
			allium.LogCommand: slog.LevelWarn, allium.LogConnection: slog.LevelWarn,
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	defer client.Close(ctx)
	fmt.Println(client.Ping(ctx))
	// Output: <nil>
}

func ExampleClientOptions_tlsFiles() {
	deployment, err := mongotest.Open(mongotest.TLS())
	if err != nil {
		log.Fatal(err)
	}
	defer deployment.Stop()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ca, cert, err := deployment.WriteTLSFiles(dir)
	if err != nil {
		log.Fatal(err)
	}
	client, err := allium.Open(deployment.URI(), allium.ClientOptions{
		TLSFiles: &allium.TLSFiles{CAFile: ca, CertificateKeyFile: cert},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(context.Background())
	fmt.Println(client.Ping(context.Background()))
	// Output: <nil>
}

func ExampleClientOptions_proxy() {
	proxy := &allium.Proxy{Host: "localhost", Username: "shop", Password: "secret"} // on port 1080
	client, err := allium.Open("mongodb://db.internal/", allium.ClientOptions{Proxy: proxy})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(context.Background())
	fmt.Printf("%+v\n", *proxy)
	// Output: {Host:localhost Port:0 Username:shop Password:***}
}

// A program's own connections to services can be checked as those to servers are.
func ExampleClient_CheckRevocation() {
	client, err := allium.Open("mongodb://localhost/?tls=true")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(context.Background())
	service := httptest.NewTLSServer(http.NotFoundHandler())
	defer service.Close()
	conn, err := tls.Dial("tcp", service.Listener.Addr().String(), &tls.Config{
		RootCAs: service.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com",
	})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	state := conn.ConnectionState()
	err = client.CheckRevocation(context.Background(), &state, func(error) { conn.Close() })
	fmt.Println(err)
	// Output: <nil>
}

// The connection string says who the client is. What is special in a password has to be escaped.
func ExampleClientOptions_scram() {
	d, err := mongotest.Open(mongotest.Auth("ada", "p@ss/word"))
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	ada := url.UserPassword("ada", "p@ss/word").String()
	client, err := allium.Open("mongodb://" + ada + "@" + d.Hosts()[0] + "/?authSource=admin")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(context.Background())
	fmt.Println(client.Ping(context.Background()))
	// Output: <nil>
}

// A client certificate is the proof; its subject is the name of a user on "$external".
func ExampleClientOptions_x509() {
	d, err := mongotest.Open(mongotest.TLS(), mongotest.Auth("root", "open sesame"))
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	if err := d.AddUser(mongotest.User{Name: d.ClientSubject(), DB: "$external", Roles: []string{"root"}}); err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "certificates")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ca, certKey, err := d.WriteTLSFiles(dir)
	if err != nil {
		log.Fatal(err)
	}
	client, err := allium.Open("mongodb://"+d.Hosts()[0]+"/?authMechanism=MONGODB-X509&tls=true", allium.ClientOptions{
		TLSFiles: &allium.TLSFiles{CAFile: ca, CertificateKeyFile: certKey},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(context.Background())
	fmt.Println(client.Ping(context.Background()))
	// Output: <nil>
}

// PLAIN sends the password as it is, for a directory that the server asks: only with TLS.
func ExampleClientOptions_plain() {
	d, err := mongotest.Open(mongotest.TLS(), mongotest.Auth("root", "open sesame"))
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	if err := d.AddUser(mongotest.User{Name: "ada", Password: "pencil", DB: "$external", Roles: []string{"root"}}); err != nil {
		log.Fatal(err)
	}
	client, err := allium.Open("mongodb://ada:pencil@"+d.Hosts()[0]+"/?authMechanism=PLAIN&tls=true", allium.ClientOptions{TLS: d.TLSConfig()})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(context.Background())
	fmt.Println(client.Ping(context.Background()))
	// Output: <nil>
}

// A program that has its servers in a configuration of its own needs no connection string.
func ExampleClientOptions_hosts() {
	ctx := context.Background()
	d, err := mongotest.Open(mongotest.ReplicaSet(3)) // a program has a deployment of its own
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	hosts := []string{d.Primary().Addr()} // one is enough: the others are found

	client, err := allium.Open("", allium.ClientOptions{Hosts: hosts, ReplicaSet: "rs0"})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)
	if err := client.Ping(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(client.Topology().Servers), "servers")
	// Output: 3 servers
}
