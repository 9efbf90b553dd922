"""Formulas of the Feynman Lectures on Physics, as targets whose structure is known.

The choice and the ranges follow Udrescu and Tegmark 2020, "AI Feynman: a physics-inspired method for symbolic
regression": those with at least three variables, so that there is something to find. Constants of nature are variables
there and here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Range = tuple[float, float]


@dataclass(frozen=True)
class FeynmanFormula:
    """`id` is the equation's number in the Lectures; variables are drawn uniformly from their ranges."""

    id: str
    text: str
    ranges: Mapping[str, Range]

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(self.ranges)


def _formula(id: str, text: str, **ranges: Range) -> FeynmanFormula:
    return FeynmanFormula(id, text, ranges)


_A, _B, _C = (1.0, 5.0), (1.0, 3.0), (1.0, 2.0)
_FAR = (5.0, 10.0)
_HIGH = (3.0, 10.0)

FORMULAS: tuple[FeynmanFormula, ...] = (
    _formula("I.6.20b", "exp(-((theta - theta1)/sigma)**2/2)/(sqrt(2*pi)*sigma)", theta=_B, theta1=_B, sigma=_B),
    _formula("I.8.14", "sqrt((x2 - x1)**2 + (y2 - y1)**2)", x1=_A, x2=_A, y1=_A, y2=_A),
    _formula(
        "I.9.18",
        "G*m1*m2/((x2 - x1)**2 + (y2 - y1)**2 + (z2 - z1)**2)",
        m1=_C,
        m2=_C,
        G=_C,
        x1=(3.0, 4.0),
        x2=_C,
        y1=(3.0, 4.0),
        y2=_C,
        z1=(3.0, 4.0),
        z2=_C,
    ),
    _formula("I.10.7", "m0/sqrt(1 - v**2/c**2)", m0=_A, v=_C, c=_HIGH),
    _formula("I.11.19", "x1*y1 + x2*y2 + x3*y3", x1=_A, x2=_A, x3=_A, y1=_A, y2=_A, y3=_A),
    _formula("I.12.2", "q1*q2*r/(4*pi*epsilon*r**3)", q1=_A, q2=_A, epsilon=_A, r=_A),
    _formula("I.12.4", "q1*r/(4*pi*epsilon*r**3)", q1=_A, epsilon=_A, r=_A),
    _formula("I.12.11", "q*(Ef + B*v*sin(theta))", q=_A, Ef=_A, B=_A, v=_A, theta=_A),
    _formula("I.13.4", "m*(v**2 + u**2 + w**2)/2", m=_A, v=_A, u=_A, w=_A),
    _formula("I.13.12", "G*m1*m2*(1/r2 - 1/r1)", m1=_A, m2=_A, r1=_A, r2=_A, G=_A),
    _formula("I.14.3", "m*g*z", m=_A, g=_A, z=_A),
    _formula("I.15.3x", "(x - u*t)/sqrt(1 - u**2/c**2)", x=_FAR, u=_C, c=(3.0, 20.0), t=_C),
    _formula("I.15.3t", "(t - u*x/c**2)/sqrt(1 - u**2/c**2)", x=_A, c=_HIGH, u=_C, t=_A),
    _formula("I.15.10", "m0*v/sqrt(1 - v**2/c**2)", m0=_A, v=_C, c=_HIGH),
    _formula("I.16.6", "(u + v)/(1 + u*v/c**2)", c=_A, v=_A, u=_A),
    _formula("I.18.4", "(m1*r1 + m2*r2)/(m1 + m2)", m1=_A, m2=_A, r1=_A, r2=_A),
    _formula("I.18.12", "r*F*sin(theta)", r=_A, F=_A, theta=(0.0, 5.0)),
    _formula("I.18.14", "m*r*v*sin(theta)", m=_A, r=_A, v=_A, theta=_A),
    _formula("I.24.6", "m*(omega**2 + omega0**2)*x**2/4", m=_B, omega=_B, omega0=_B, x=_B),
    _formula("I.27.6", "1/(1/d1 + n/d2)", d1=_A, d2=_A, n=_A),
    _formula("I.29.16", "sqrt(x1**2 + x2**2 - 2*x1*x2*cos(theta1 - theta2))", x1=_A, x2=_A, theta1=_A, theta2=_A),
    _formula("I.30.3", "I0*sin(n*theta/2)**2/sin(theta/2)**2", I0=_A, theta=_A, n=_A),
    _formula("I.30.5", "asin(lam/(n*d))", lam=_C, d=(2.0, 5.0), n=_A),
    _formula("I.32.5", "q**2*a**2/(6*pi*epsilon*c**3)", q=_A, a=_A, epsilon=_A, c=_A),
    _formula(
        "I.32.17",
        "epsilon*c*Ef**2/2*(8*pi*r**2/3)*omega**4/(omega**2 - omega0**2)**2",
        epsilon=_C,
        c=_C,
        Ef=_C,
        r=_C,
        omega=_C,
        omega0=(3.0, 5.0),
    ),
    _formula("I.34.8", "q*v*B/p", q=_A, v=_A, B=_A, p=_A),
    _formula("I.34.10", "omega0/(1 - v/c)", c=_HIGH, v=_C, omega0=_A),
    _formula("I.34.14", "(1 + v/c)/sqrt(1 - v**2/c**2)*omega0", c=_HIGH, v=_C, omega0=_A),
    _formula("I.37.4", "I1 + I2 + 2*sqrt(I1*I2)*cos(delta)", I1=_A, I2=_A, delta=_A),
    _formula("I.38.12", "4*pi*epsilon*h**2/(m*q**2)", m=_A, q=_A, h=_A, epsilon=_A),
    _formula("I.39.11", "p*V/(gamma - 1)", gamma=(2.0, 5.0), p=_A, V=_A),
    _formula("I.39.22", "n*kb*T/V", n=_A, T=_A, V=_A, kb=_A),
    _formula("I.40.1", "n0*exp(-m*g*x/(kb*T))", n0=_A, m=_A, x=_A, T=_A, g=_A, kb=_A),
    _formula("I.41.16", "h*omega**3/(pi**2*c**2*(exp(h*omega/(kb*T)) - 1))", omega=_A, T=_A, h=_A, kb=_A, c=_A),
    _formula("I.43.16", "mu*q*V/d", mu=_A, q=_A, V=_A, d=_A),
    _formula("I.43.31", "mob*kb*T", mob=_A, T=_A, kb=_A),
    _formula("I.43.43", "kb*v/((gamma - 1)*A)", gamma=(2.0, 5.0), kb=_A, A=_A, v=_A),
    _formula("I.44.4", "n*kb*T*log(V2/V1)", n=_A, kb=_A, T=_A, V1=_A, V2=_A),
    _formula("I.47.23", "sqrt(gamma*p/rho)", gamma=_A, p=_A, rho=_A),
    _formula("I.48.20", "m*c**2/sqrt(1 - v**2/c**2)", m=_A, v=_C, c=_HIGH),
    _formula("I.50.26", "x1*(cos(omega*t) + alpha*cos(omega*t)**2)", x1=_B, omega=_B, t=_B, alpha=_B),
    _formula("II.2.42", "kappa*(T2 - T1)*A/d", kappa=_A, T1=_A, T2=_A, A=_A, d=_A),
    _formula("II.4.23", "q/(4*pi*epsilon*r)", q=_A, epsilon=_A, r=_A),
    _formula("II.6.11", "pd*cos(theta)/(4*pi*epsilon*r**2)", epsilon=_B, pd=_B, theta=_B, r=_B),
    _formula(
        "II.6.15a",
        "3/(4*pi*epsilon)*pd*z/r**5*sqrt(x**2 + y**2)",
        epsilon=_B,
        pd=_B,
        r=_B,
        x=_B,
        y=_B,
        z=_B,
    ),
    _formula("II.6.15b", "3/(4*pi*epsilon)*pd*cos(theta)*sin(theta)/r**3", epsilon=_B, pd=_B, theta=_B, r=_B),
    _formula("II.8.7", "3*q**2/(5*4*pi*epsilon*d)", q=_A, epsilon=_A, d=_A),
    _formula("II.10.9", "sigma/epsilon/(1 + chi)", sigma=_A, epsilon=_A, chi=_A),
    _formula("II.11.3", "q*Ef/(m*(omega0**2 - omega**2))", q=_B, Ef=_B, m=_B, omega0=(3.0, 5.0), omega=_C),
    _formula("II.11.17", "n0*(1 + pd*Ef*cos(theta)/(kb*T))", n0=_B, kb=_B, T=_B, theta=_B, pd=_B, Ef=_B),
    _formula("II.11.20", "n*pd**2*Ef/(3*kb*T)", n=_A, pd=_A, Ef=_A, kb=_A, T=_A),
    _formula("II.13.17", "I/(4*pi*epsilon*c**2)*2/r", epsilon=_A, c=_A, I=_A, r=_A),
    _formula("II.13.23", "rho/sqrt(1 - v**2/c**2)", rho=_A, v=_C, c=_HIGH),
    _formula("II.13.34", "rho*v/sqrt(1 - v**2/c**2)", rho=_A, v=_C, c=_HIGH),
    _formula("II.15.4", "-mom*B*cos(theta)", mom=_A, B=_A, theta=_A),
    _formula("II.21.32", "q/(4*pi*epsilon*r*(1 - v/c))", q=_A, epsilon=_A, r=_A, v=_C, c=_HIGH),
    _formula("II.24.17", "sqrt(omega**2/c**2 - pi**2/d**2)", omega=(4.0, 6.0), c=_C, d=(2.0, 4.0)),
    _formula("II.34.2", "q*v*r/2", q=_A, v=_A, r=_A),
    _formula("II.34.11", "g*q*B/(2*m)", g=_A, q=_A, B=_A, m=_A),
    _formula("II.34.29b", "g*mom*B*Jz/h", g=_A, h=_A, Jz=_A, mom=_A, B=_A),
    _formula("II.35.18", "n0/(exp(mom*B/(kb*T)) + exp(-mom*B/(kb*T)))", n0=_B, kb=_B, T=_B, mom=_B, B=_B),
    _formula("II.35.21", "n*mom*tanh(mom*B/(kb*T))", n=_A, mom=_A, B=_A, kb=_A, T=_A),
    _formula(
        "II.36.38",
        "mom*H/(kb*T) + mom*alpha/(epsilon*c**2*kb*T)*M",
        mom=_B,
        H=_B,
        kb=_B,
        T=_B,
        alpha=_B,
        epsilon=_B,
        c=_B,
        M=_B,
    ),
    _formula("II.37.1", "mom*(1 + chi)*B", mom=_A, B=_A, chi=_A),
    _formula("II.38.3", "Y*A*x/d", Y=_A, A=_A, d=_A, x=_A),
    _formula(
        "III.9.52",
        "pd*Ef*t/h*sin((omega - omega0)*t/2)**2/((omega - omega0)*t/2)**2",
        pd=_B,
        Ef=_B,
        t=_B,
        h=_B,
        omega=_A,
        omega0=_A,
    ),
    _formula("III.10.19", "mom*sqrt(Bx**2 + By**2 + Bz**2)", mom=_A, Bx=_A, By=_A, Bz=_A),
    _formula("III.13.18", "2*E*d**2*k/h", E=_A, d=_A, k=_A, h=_A),
    _formula("III.14.14", "I0*(exp(q*V/(kb*T)) - 1)", I0=_A, q=_C, V=_C, kb=_C, T=_C),
    _formula("III.15.12", "2*U*(1 - cos(k*d))", U=_A, k=_A, d=_A),
    _formula("III.15.14", "h**2/(2*E*d**2)", h=_A, E=_A, d=_A),
    _formula("III.17.37", "beta*(1 + alpha*cos(theta))", beta=_A, alpha=_A, theta=_A),
    _formula("III.19.51", "-m*q**4/(2*(4*pi*epsilon)**2*h**2)/n**2", m=_A, q=_A, h=_A, n=_A, epsilon=_A),
    _formula("III.21.20", "-rho*q*A/m", rho=_A, q=_A, A=_A, m=_A),
)
