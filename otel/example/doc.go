// Package example shows the traces and the metrics of a client end to end: to Prometheus, and by
// OTLP to a collector. It is a module of its own, so that package otel does not depend on
// exporters.
package example
