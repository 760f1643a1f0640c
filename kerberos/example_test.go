package kerberos_test

import (
	"context"
	"fmt"

	"allium"
	"allium/kerberos"
)

// A user logs in with the tickets that kinit has got. The connection string names the principal,
// whose "@" is written as %40.
func ExampleNew() {
	client, err := allium.Open("mongodb://ada%40EXAMPLE.COM@db1.example.com/?authMechanism=GSSAPI&tls=true", allium.ClientOptions{
		GSSAPI: kerberos.New(),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(context.Background())
	fmt.Println("open")
	// Output: open
}

// A service logs in with a keytab, which needs no kinit.
func ExampleNew_keytab() {
	client, err := allium.Open("mongodb://billing%40EXAMPLE.COM@db1.example.com/?authMechanism=GSSAPI&tls=true", allium.ClientOptions{
		GSSAPI: kerberos.New(kerberos.Options{Keytab: "/etc/billing.keytab"}),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(context.Background())
	fmt.Println("open")
	// Output: open
}
