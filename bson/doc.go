// Package bson encodes and decodes BSON 1.1 and MongoDB Extended JSON.
package bson
