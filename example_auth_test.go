package allium_test

import (
	"context"
	"fmt"
	"log"
	"net/url"
	"os"

	"allium"
	"allium/mongotest"
)

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
