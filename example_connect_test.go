package allium_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"allium"
	"allium/mongotest"
)

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
