// Package dns finds the servers of a mongodb+srv connection string (specifications: Initial DNS
// Seedlist Discovery, and Polling SRV Records for mongos Discovery).
package dns
