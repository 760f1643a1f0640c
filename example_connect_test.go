package allium_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
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
