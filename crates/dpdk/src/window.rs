//! The window: the part of a packet that the packet path reads and writes.

/// Bytes of headroom in front of the frame that a window covers: room for a longer header.
pub const HEAD: usize = 32;
/// Size of a window: the headroom and the first 96 bytes of the frame, which hold two tags, PPPoE, PPP and an IPv4
/// header with all options or an IPv6 header with the start of what follows.
pub const WINDOW: usize = 128;

/// The bytes around a frame's start. Only those within the frame's length are the packet's; what lies behind is what
/// the buffer held before, never outside of it.
///
/// Loads and stores are in network byte order. With a constant offset, as all are after inlining, no bounds check is
/// left; an offset outside the window panics instead of reading elsewhere.
///
/// ```
/// let mut w = dpdk::Window::default();
/// w.put16(dpdk::HEAD + 12, 0x0800);
/// assert_eq!(w.u16(dpdk::HEAD + 12), 0x0800);
/// assert_eq!(w.u8(dpdk::HEAD + 12), 8);
/// ```
#[repr(transparent)]
#[derive(Clone, Debug)]
pub struct Window([u8; WINDOW]);

impl Default for Window {
    fn default() -> Self {
        Window([0; WINDOW])
    }
}

macro_rules! access {
    ($($get:ident $put:ident $raw:ident $int:ty;)*) => {$(
        #[doc = concat!("The ", stringify!($int), " at `at`.")]
        #[inline(always)]
        pub fn $get(&self, at: usize) -> $int {
            <$int>::from_be_bytes(*self.0[at..].first_chunk().expect("inside the window"))
        }
        #[doc = concat!("Writes the ", stringify!($int), " at `at`.")]
        #[inline(always)]
        pub fn $put(&mut self, at: usize, value: $int) {
            *self.0[at..].first_chunk_mut().expect("inside the window") = value.to_be_bytes();
        }
        #[doc = concat!("The ", stringify!($int), " at `at` in the CPU's byte order, for what is compared or summed.")]
        #[inline(always)]
        pub fn $raw(&self, at: usize) -> $int {
            <$int>::from_ne_bytes(*self.0[at..].first_chunk().expect("inside the window"))
        }
    )*};
}

impl Window {
    access! {
        u8 put8 raw8 u8;
        u16 put16 raw16 u16;
        u32 put32 raw32 u32;
        u64 put64 raw64 u64;
        u128 put128 raw128 u128;
    }

    /// Is the ones' complement sum of the 20 octets at `at` a zero, as it is over an IPv4 header without options whose
    /// checksum is right (RFC 1071)? The order of octets does not matter to that.
    #[inline(always)]
    pub fn sums_up(&self, at: usize) -> bool {
        let (sum, carry) = self.raw64(at).overflowing_add(self.raw64(at + 8));
        let (sum, carry) = sum.overflowing_add(self.raw32(at + 16) as u64 + carry as u64);
        // It was small when it overflowed. With the carry around, the sum of words of 64 bits is that of words of 16 but
        // for multiples of 0xffff, as 2^64 - 1 is one. A multiple it is if the product with the inverse is its quotient.
        const INVERSE: u64 = 0xfffe_fffe_fffe_ffff;
        const { assert!(INVERSE.wrapping_mul(0xffff) == 1) };
        (sum + carry as u64).wrapping_mul(INVERSE) <= u64::MAX / 0xffff
    }

    /// Copies a header in.
    #[inline(always)]
    pub fn copy_in<const N: usize>(&mut self, at: usize, bytes: &[u8; N]) {
        *self.0[at..].first_chunk_mut().expect("inside the window") = *bytes;
    }

    /// Some bytes, for what a load does not fit.
    #[inline(always)]
    pub fn bytes(&self, at: core::ops::Range<usize>) -> &[u8] {
        &self.0[at]
    }

    /// A window over a frame that starts at [`HEAD`], for tests of what works on windows.
    pub fn of(frame: &[u8]) -> Self {
        let mut w = Window::default();
        let n = frame.len().min(WINDOW - HEAD);
        w.0[HEAD..HEAD + n].copy_from_slice(&frame[..n]);
        w
    }
}
