// Command lambda is a function for AWS Lambda, as the specification FaaS Automated Testing
// describes it: it inserts a document, deletes it, and reports how long that took and what the
// driver did beside it. It speaks the runtime API itself, so that it depends on nothing but the
// driver: build it for linux as "bootstrap", for the runtime provided.al2023, and set MONGODB_URI.
//
// The client is made once and lives as long as the process, which Lambda freezes between
// invocations.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"allium"
	"allium/bson"
)

func main() {
	if err := run(context.Background(), os.Getenv("AWS_LAMBDA_RUNTIME_API"), os.Getenv("MONGODB_URI")); err != nil {
		fmt.Fprintln(os.Stderr, "lambda:", err)
		os.Exit(1)
	}
}

// run serves invocations until the runtime API ends.
func run(ctx context.Context, api, uri string) error {
	if api == "" {
		return errors.New("AWS_LAMBDA_RUNTIME_API is not set: this program runs on AWS Lambda")
	}
	base := "http://" + api + "/2018-06-01/runtime/"
	if uri == "" {
		return fail(ctx, base+"init/error", errors.New("MONGODB_URI is not set"))
	}
	s := &statistics{}
	client, err := allium.Open(uri, allium.ClientOptions{
		CommandMonitor: s.commands(), PoolMonitor: s.pools(), ServerMonitor: s.servers(),
	})
	if err != nil {
		return fail(ctx, base+"init/error", err)
	}
	defer client.Close(ctx)
	for {
		if err := invocation(ctx, base, client, s); err != nil {
			return err
		}
	}
}

// invocation waits for an event and answers it.
func invocation(ctx context.Context, base string, client *allium.Client, s *statistics) error {
	header, err := call(ctx, http.MethodGet, base+"invocation/next", nil)
	if err != nil {
		return err
	}
	id := header.Get("Lambda-Runtime-Aws-Request-Id")
	report, err := handle(ctx, client, s)
	if err != nil {
		return post(ctx, base+"invocation/"+id+"/error", failure(err))
	}
	body, err := json.Marshal(report)
	if err != nil {
		return err
	}
	return post(ctx, base+"invocation/"+id+"/response", response{
		StatusCode: http.StatusOK, Headers: map[string]string{"Content-Type": "application/json"}, Body: string(body),
	})
}

// handle forces writes on the primary, and reports.
func handle(ctx context.Context, client *allium.Client, s *statistics) (*report, error) {
	ctx, cancel := context.WithTimeout(ctx, 25*time.Second) // the function's own limit is 30 s
	defer cancel()
	coll := client.Database("faas").Collection("lambda")
	inserted, err := coll.InsertOne(ctx, bson.D{{Key: "n", Value: 1}})
	if err != nil {
		return nil, err
	}
	if _, err := coll.DeleteOne(ctx, bson.D{{Key: "_id", Value: inserted.InsertedID}}); err != nil {
		return nil, err
	}
	r := s.report()
	if r.AwaitedHeartbeats > 0 {
		return nil, fmt.Errorf("%d heartbeats were awaited: the streaming protocol is on", r.AwaitedHeartbeats)
	}
	return r, nil
}

// response is what an API Gateway takes.
type response struct {
	StatusCode int               `json:"statusCode"`
	Headers    map[string]string `json:"headers"`
	Body       string            `json:"body"`
}

// runtimeError is how the runtime API is told of an error.
type runtimeError struct {
	Message string `json:"errorMessage"`
	Type    string `json:"errorType"`
}

func failure(err error) runtimeError { return runtimeError{err.Error(), fmt.Sprintf("%T", err)} }

// fail tells the runtime API that the function cannot start.
func fail(ctx context.Context, url string, err error) error {
	return errors.Join(err, post(ctx, url, failure(err)))
}

func post(ctx context.Context, url string, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = call(ctx, http.MethodPost, url, bytes.NewReader(body))
	return err
}

// call calls the runtime API. A call for the next invocation returns when there is one.
func call(ctx context.Context, method, url string, body io.Reader) (http.Header, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, err
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err == nil && reply.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: %s: %s", url, reply.Status, text)
	}
	return reply.Header, err
}
