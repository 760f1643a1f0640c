// Package mongo is the official driver's package of that name on Allium. Values are encoded and
// decoded here, with the registries and settings of package bson; Allium takes and gives documents
// as they are sent. Errors are converted to this package's types.
package mongo
