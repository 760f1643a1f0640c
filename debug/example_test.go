package debug_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"allium"
	"allium/debug"
	"allium/mongotest"
)

func ExampleHandler() {
	ctx := context.Background()
	d, err := mongotest.Open() // a program has a deployment of its own
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	client, err := allium.Open(d.URI())
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)
	if err := client.Ping(ctx); err != nil {
		log.Fatal(err)
	}

	// The page names hosts and collections: serve it where only operators come, as here on a mux
	// that is the program's internal one.
	internal := http.NewServeMux()
	internal.Handle("/debug/allium/", debug.Handler(client))

	// What a browser gets, and a program that asks for JSON.
	for _, path := range []string{"/debug/allium/", "/debug/allium/?format=json"} {
		w := httptest.NewRecorder()
		internal.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		fmt.Println(w.Code, w.Header().Get("Content-Type"), strings.Contains(w.Body.String(), "Standalone"))
	}
	// Output:
	// 200 text/html; charset=utf-8 true
	// 200 application/json true
}
