//go:build e2e

package e2e

import (
	"io"
	"net"
	"strconv"
	"testing"
)

// A peer listens on the loopback and takes down what arrives.
type peer struct {
	address, port string
	received      chan string
}

func newPeer(t *testing.T) *peer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	address := listener.Addr().(*net.TCPAddr)
	p := &peer{address.String(), strconv.Itoa(address.Port), make(chan string, 16)}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			text, err := io.ReadAll(conn)
			conn.Close()
			if err != nil {
				text = []byte("error: " + err.Error())
			}
			p.received <- string(text)
		}
	}()
	return p
}

// dial connects to the peer itself.
func (p *peer) dial(t *testing.T) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", p.address)
	if err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

// next returns all that came through the next connection, in the order of
// connecting. That is known when nobody has its other end open any more.
func (p *peer) next(t *testing.T) string {
	t.Helper()
	select {
	case text := <-p.received:
		return text
	case <-deadline(t).Done():
		t.Fatal("the peer's connection does not end, or there is none")
		return ""
	}
}
