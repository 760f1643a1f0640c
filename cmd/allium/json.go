package main

import (
	"errors"
	"fmt"

	"allium/bson"
	"allium/internal/uri"
)

// document reads a document in Extended JSON, or as the shell has it.
func document(text string) (bson.Raw, error) {
	raw, err := bson.ParseExtJSON([]byte(text))
	if err != nil {
		if text, err = shellJSON(text); err == nil {
			raw, err = bson.ParseExtJSON([]byte(text))
		}
	}
	if err == nil && len(raw) <= 5 {
		err = errors.New("document is empty")
	}
	return raw, err
}

// array reads an array of documents in Extended JSON, or as the shell has it.
func array(text string) ([]bson.Raw, error) {
	v, err := bson.ParseExtJSONValue([]byte(text))
	if err != nil {
		if text, err = shellJSON(text); err == nil {
			v, err = bson.ParseExtJSONValue([]byte(text))
		}
	}
	if err != nil {
		return nil, err
	}
	list, ok := v.Array()
	if !ok {
		return nil, fmt.Errorf("a %s, want an array of documents", v.Type)
	}
	docs := []bson.Raw{}
	for el := range list.Values() {
		doc, ok := el.Document()
		if !ok {
			return nil, fmt.Errorf("the array holds a %s, want documents", el.Type)
		}
		docs = append(docs, doc)
	}
	return docs, nil
}

// extJSON returns a document as Extended JSON on one line.
func extJSON(doc bson.Raw, canonical bool) ([]byte, error) {
	return bson.AppendExtJSON(nil, doc, canonical)
}

// database returns the database that a connection string names, "" if it names none.
func database(connectionString string) (string, error) {
	cfg, err := uri.Parse(connectionString)
	if err != nil {
		return "", err
	}
	return cfg.Database, nil
}
