// Package rig is what the tests of the driver as a whole have in common: clients and deployments
// that end with their test, records of the commands that were sent, tables of operations. What only
// one package of tests needs stands there.
package rig
