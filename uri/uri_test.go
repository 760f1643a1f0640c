package uri_test

import (
	"fmt"
	"log"
	"reflect"
	"strings"
	"testing"

	"allium/uri"
)

// The database that a connection string names, and a form of it that can be logged.
func ExampleParse() {
	u, err := uri.Parse("mongodb://ada:lovelace@db1.example.com,db2.example.com:27018/shop?replicaSet=rs0&retryWirtes=false")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(u.Database, u.Hosts)
	fmt.Println(u.Warnings)
	fmt.Println(u.String())
	fmt.Printf("%v\n", u)
	// Output:
	// shop [db1.example.com:27017 db2.example.com:27018]
	// [option "retrywirtes" is not supported, did you mean "retryWrites"?]
	// mongodb://ada:***@db1.example.com,db2.example.com:27018/shop?replicaSet=rs0&retryWirtes=***
	// mongodb://ada:***@db1.example.com,db2.example.com:27018/shop?replicaSet=rs0&retryWirtes=***
}

func ExampleURI_Format() {
	u, err := uri.Parse("mongodb://ada:lovelace@localhost")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%+v %s\n", u, *u)
	// Output: mongodb://ada:***@localhost mongodb://ada:***@localhost
}

func TestParse(t *testing.T) {
	for text, want := range map[string]uri.URI{
		"mongodb://h":                          {Hosts: []string{"h:27017"}},
		"mongodb://H:1/d?appName=a&tls=true":   {Hosts: []string{"h:1"}, Database: "d", AppName: "a", TLS: true},
		"mongodb+srv://u@Cluster.example.com/": {SRVHost: "cluster.example.com", Username: "u", TLS: true},
		"mongodb://%2Ftmp%2Fa.sock/my%2Ddb":    {Hosts: []string{"/tmp/a.sock"}, Database: "my-db"},
	} {
		u, err := uri.Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := *u
		got.Warnings = nil
		if fields := func(u uri.URI) []any {
			return []any{u.Hosts, u.SRVHost, u.Database, u.Username, u.AppName, u.ReplicaSet, u.TLS}
		}; !reflect.DeepEqual(fields(got), fields(want)) {
			t.Errorf("%s: %v, want %v", text, fields(got), fields(want))
		}
	}
	if _, err := uri.Parse("mongodb://u:hunter2@h:port"); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
}
