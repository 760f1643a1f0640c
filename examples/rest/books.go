package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"allium"
	"allium/bson"
	"allium/mongoerr"
)

// Book is a document of the collection and of the API.
type Book struct {
	ID    bson.ObjectID `bson:"_id" json:"id"`
	ISBN  string        `bson:"isbn" json:"isbn"`
	Title string        `bson:"title" json:"title"`
	Cents int           `bson:"cents" json:"cents"`
}

type shop struct{ books *allium.Collection[Book] }

// newShop makes the index that keeps the promise of one book per ISBN. That is done once.
func newShop(ctx context.Context, client *allium.Client) (*shop, error) {
	s := &shop{allium.CollectionOf[Book](client.Database("shop"), "books")}
	_, err := s.books.CreateIndex(ctx, allium.IndexModel{Keys: bson.D{{Key: "isbn", Value: 1}}, Unique: true})
	return s, err
}

func (s *shop) register(mux *http.ServeMux) {
	mux.HandleFunc("GET /books", handle(s.list))
	mux.HandleFunc("POST /books", handle(s.add))
	mux.HandleFunc("GET /books/{id}", handle(s.get))
}

// errInvalid is the request's fault. Its text is shown to whoever sent it.
type errInvalid struct{ error }

// handle answers a request with what a function returns: a value as JSON with its status, or the
// status that suits an error. The request's context ends the operation when the caller goes away.
func handle(f func(*http.Request) (status int, v any, err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
		status, v, err := f(r)
		if err != nil {
			slog.InfoContext(r.Context(), "request", "method", r.Method, "path", r.URL.Path, "error", err)
			status, v = explain(err)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(v)
	}
}

// explain returns what whoever sent the request is told. The errors of a server name hosts and
// fields: they are for the log.
func explain(err error) (status int, v any) {
	say := func(text string) map[string]string { return map[string]string{"error": text} }
	switch {
	case errors.As(err, new(errInvalid)):
		return http.StatusBadRequest, say(err.Error())
	case errors.Is(err, mongoerr.ErrNoDocuments):
		return http.StatusNotFound, say("there is no such book")
	case errors.Is(err, mongoerr.ErrDuplicateKey):
		return http.StatusConflict, say("there is a book with this ISBN already")
	case mongoerr.IsTimeout(err), errors.As(err, new(*mongoerr.SelectionError)):
		return http.StatusServiceUnavailable, say("the database does not answer: try again")
	}
	return http.StatusInternalServerError, say("internal error")
}

// list returns a page of 50 books; the next one begins after=<id of the last>.
func (s *shop) list(r *http.Request) (int, any, error) {
	after, err := parseID(cmp.Or(r.URL.Query().Get("after"), bson.NilObjectID.Hex()))
	if err != nil {
		return 0, nil, err
	}
	books, err := s.books.All(r.Context(), bson.M{"_id": bson.M{"$gt": after}},
		allium.FindOptions{Sort: bson.D{{Key: "_id", Value: 1}}, Limit: 50})
	return http.StatusOK, append([]Book{}, books...), err // an empty list is [], and not null
}

func (s *shop) add(r *http.Request) (int, any, error) {
	var book Book
	if err := json.NewDecoder(r.Body).Decode(&book); err != nil {
		return 0, nil, errInvalid{err}
	}
	if book.ISBN == "" || book.Title == "" || book.Cents < 0 {
		return 0, nil, errInvalid{errors.New("a book has an isbn, a title and no negative price")}
	}
	book.ID = bson.NewObjectID()
	_, err := s.books.InsertOne(r.Context(), book)
	return http.StatusCreated, book, err
}

func (s *shop) get(r *http.Request) (int, any, error) {
	id, err := parseID(r.PathValue("id"))
	if err != nil {
		return 0, nil, err
	}
	book, err := s.books.FindOne(r.Context(), bson.M{"_id": id})
	return http.StatusOK, book, err
}

func parseID(s string) (bson.ObjectID, error) {
	id, err := bson.ParseObjectID(s)
	if err != nil {
		err = errInvalid{err}
	}
	return id, err
}
