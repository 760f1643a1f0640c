package main

import "go.mongodb.org/mongo-driver/v2/mongo/options"

func updateUpsert() options.Lister[options.UpdateOneOptions] {
	return options.UpdateOne().SetUpsert(true)
}

func updateCollated(c *options.Collation) options.Lister[options.UpdateOneOptions] {
	return options.UpdateOne().SetCollation(c)
}
