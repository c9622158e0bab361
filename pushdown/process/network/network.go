// Package network is where a program listens and dials: the system's network, unless a test gives it another one.
package network

import (
	"context"
	"net"
)

// Network is what a program needs of a network. Its methods mean what those of package net do.
type Network interface {
	Listen(network, address string) (net.Listener, error)
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// System is the network of the system.
type System struct{}

// Listen is net.Listen.
func (System) Listen(network, address string) (net.Listener, error) {
	return net.Listen(network, address)
}

// DialContext is that of a net.Dialer without settings.
func (System) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, address)
}
