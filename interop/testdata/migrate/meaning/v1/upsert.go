package main

import "go.mongodb.org/mongo-driver/mongo/options"

func updateUpsert() *options.UpdateOptions { return options.Update().SetUpsert(true) }

func updateCollated(c *options.Collation) *options.UpdateOptions {
	return options.Update().SetCollation(c)
}
